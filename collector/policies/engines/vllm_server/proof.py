"""Proof that a server has a model's weights: it scores tokens as the model does in transformers.

The server samples a few answers at a temperature other than 1, and transformers computes the
log-probabilities of the same tokens at that temperature, on the CPU of this machine. They agree if
the server has these weights and returns log-probabilities at the temperature.
"""

from collections.abc import Sequence
from typing import Any

import torch

from graphcredit.collector.policies.engines.base import Dtype, Request, Response, Sampling
from graphcredit.collector.policies.engines.transformers import load_model
from graphcredit.collector.policies.engines.vllm_server.server import VllmServer

LIMITS: dict[str, float] = {"float32": 1e-3, "bfloat16": 0.1}
"""Number type to the largest mean difference, in nats, that is rounding."""

_SAMPLING = Sampling(temperature=2.0, max_new_tokens=16)
"""A high temperature tells log-probabilities at it well from those without it."""

_NUM_QUESTIONS, _PROMPT_LENGTH, _STRIDE = 4, 16, 97


def questions(num_tokens: int) -> list[Request]:
    """Return requests whose prompts spread over a vocabulary.

    Args:
        num_tokens: Size of the vocabulary.
    """
    return [
        Request(
            prompt_ids=tuple(
                (question + _STRIDE * place) % num_tokens for place in range(_PROMPT_LENGTH)
            ),
            seed=question,
        )
        for question in range(_NUM_QUESTIONS)
    ]


def ask(server: VllmServer, requests: Sequence[Request], label: str) -> list[Response]:
    """Return a server's answers; weights with this label must sample them."""
    return [
        server.sample(request, _SAMPLING, end_ids=frozenset(), label=label) for request in requests
    ]


def mean_gap(
    path: str, dtype: Dtype, requests: Sequence[Request], responses: Sequence[Response]
) -> float:
    """Return the mean absolute difference between a server's log-probabilities and the model's.

    Args:
        path: Directory of the model.
        dtype: Number type of the arithmetic.
        requests: What the server was asked.
        responses: What it answered.

    Raises:
        InputError: The directory has no model that can be loaded.
    """
    model = load_model(path, torch.device("cpu"), dtype)
    gaps: list[float] = []
    for request, response in zip(requests, responses, strict=True):
        known = _logprobs(model, request, response)
        gaps += (known - torch.tensor(response.logprobs)).abs().tolist()
    return sum(gaps) / len(gaps)


def _logprobs(model: Any, request: Request, response: Response) -> torch.Tensor:
    """Return the model's log-probabilities of an answer's tokens, [length] float32."""
    ids = torch.tensor([[*request.prompt_ids, *response.token_ids]])
    with torch.inference_mode():
        logits = model(ids).logits[0, len(request.prompt_ids) - 1 : -1].float()
    logprobs = (logits / _SAMPLING.temperature).log_softmax(-1)
    return logprobs[range(len(response.token_ids)), response.token_ids]
