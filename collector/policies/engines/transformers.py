"""The sampling engine with transformers, which needs no library beyond those of training.

Rows that have ended leave the batch. Each row has its own seed and samples by inverting the
distribution function, so its tokens do not depend on the other rows, apart from rounding.
`generate` of transformers does none of this: it keeps ended rows, reads every copy of a prompt, and
samples all rows from one generator.
"""

import random
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from graphcredit.collector.policies.engines.base import (
    Dtype,
    Request,
    Response,
    Sampling,
    arithmetic,
    max_answer,
)
from graphcredit.collector.policies.engines.decoding import Decoder
from graphcredit.collector.policies.model_files import require_safetensors
from graphcredit.collector.policies.tokens import end_ids_of, load_tokenizer
from graphcredit.store.errors import EngineError, InputError, library_errors


class TransformersEngine:
    """A causal language model, on the GPU if there is one."""

    def __init__(self) -> None:
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model: Any = None
        self._decoder: Any = None
        self.tokenizer: Any = None
        self.end_ids: frozenset[int] = frozenset()

    @property
    def room(self) -> int | None:
        """Number of positions of the model for which a row does not depend on the other rows."""
        config = self._model.config.get_text_config()
        rope = getattr(config, "rope_parameters", None) or {}
        # Beyond this length of the longest row, LongRoPE changes the rotation of all rows.
        ends = [
            each["original_max_position_embeddings"]
            for each in (rope, *rope.values())
            if isinstance(each, dict) and each.get("rope_type") == "longrope"
        ]
        ends.append(getattr(config, "max_position_embeddings", None))
        return min((end for end in ends if end is not None), default=None)

    def load(self, path: str, dtype: Dtype = "auto") -> None:
        """Load a model, in place of the current one."""
        self._model = self._decoder = None  # free the memory first: two models may not fit
        self.tokenizer = load_tokenizer(path)
        self._model = load_model(path, self._device, dtype)
        self._decoder = Decoder(self._model)
        self.end_ids = end_ids_of(self.tokenizer, self._model.generation_config.eos_token_id)

    def forget(self) -> None:
        """Forget what earlier prompts began with."""
        self._decoder.forget()

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        """Sample an answer to each request.

        A batch that does not fit in the memory of the device is answered in halves, with a warning.

        Raises:
            EngineError: A single request does not fit.
        """
        with suppress(torch.OutOfMemoryError):
            return self._generate(requests, sampling)
        # Only here: the error held what the batch had in memory.
        self._decoder = Decoder(self._model)
        if len(requests) == 1:
            raise EngineError(
                f"the model and a prompt of {len(requests[0].prompt_ids):,} tokens must fit in the "
                f"memory of {self._device}: take a shorter template, --dtype bfloat16, or a vLLM "
                "server with several cards"
            )
        text = f"{len(requests)} rollouts do not fit in the memory of {self._device} together: "
        warnings.warn(f"{text}they are sampled in halves; --concurrency plays fewer", stacklevel=2)
        half = len(requests) // 2
        return [
            *self.generate(requests[:half], sampling),
            *self.generate(requests[half:], sampling),
        ]

    def _generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        limits = [max_answer(request, sampling, self.room) for request in requests]
        responses = [Response(token_ids=[], logprobs=[]) for _ in requests]
        chances = [random.Random(request.seed) for request in requests]
        rows = list(range(len(requests)))
        with torch.inference_mode():
            batch = self._decoder.begin([request.prompt_ids for request in requests])
            while rows:
                uniforms = [chances[row].random() for row in rows]
                ids, logprobs = draw(batch.logits, uniforms, sampling.temperature)
                drawn = zip(rows, ids.tolist(), logprobs.tolist(), strict=True)
                kept: list[int] = []
                for place, (row, token_id, logprob) in enumerate(drawn):
                    responses[row].token_ids.append(token_id)
                    responses[row].logprobs.append(logprob)
                    is_full = len(responses[row].token_ids) >= limits[row]
                    if token_id not in self.end_ids and not is_full:
                        kept.append(place)
                rows = [rows[place] for place in kept]
                if kept:
                    batch.go_on(kept, ids)
        return responses


def draw(logits: Tensor, uniforms: Sequence[float], temperature: float) -> tuple[Tensor, Tensor]:
    """Sample a token from each row's full distribution.

    Args:
        logits: [rows, vocabulary].
        uniforms: [rows] uniform random numbers in [0, 1), each of which determines a row's token.
        temperature: Divides the logits; 0 takes the most probable token.

    Returns:
        [rows] int64 token ids, and [rows] float32 log-probabilities at the temperature.
    """
    if not temperature:
        ids = logits.argmax(dim=-1)
        return ids, torch.zeros(len(ids))
    logprobs = (logits.float() / temperature).log_softmax(dim=-1)
    # In float64: a float32 sum over 150,000 tokens would lose the smallest probabilities.
    cumulative = logprobs.double().exp().cumsum(dim=-1)
    reached = torch.tensor(uniforms, dtype=torch.float64, device=logits.device)[:, None]
    # right=True: a token of probability 0 is never sampled.
    ids = torch.searchsorted(cumulative, reached * cumulative[:, -1:], right=True)
    return ids[:, 0], logprobs.gather(-1, ids)[:, 0]


def load_model(path: str, device: torch.device, dtype: Dtype) -> Any:
    """Return the causal language model of a directory, for sampling."""
    kind: torch.dtype = getattr(torch, arithmetic(dtype))
    disable_progress_bar()
    with library_errors(f"a policy must be a causal language model in safetensors: {path}"):
        require_safetensors(path)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=kind,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
        model, report = loaded
    lacking = sorted([*report["missing_keys"], *map(str, report["mismatched_keys"])])
    if lacking:
        raise InputError(
            f"a policy must have all its weights: in {path}, a {type(model).__name__}, "
            f"{len(lacking)} are missing or have another shape, such as {lacking[0]}. They would "
            "be random numbers"
        )
    try:
        return model.to(device).eval().requires_grad_(False)
    except torch.OutOfMemoryError:
        size = sum(each.nbytes for each in model.parameters()) / 2**30
        raise EngineError(
            f"a model must fit in the memory of its device: that of {path} takes {size:.1f} GiB in "
            f"{kind}, more than {device} has left. Take --dtype bfloat16, or a vLLM server with "
            "several cards"
        ) from None
