"""Give a server the weights of a model, and prove that it has them."""

import os

from graphcredit.collector.policies.engines.base import Dtype, Request, Response
from graphcredit.collector.policies.engines.vllm_server.proof import (
    LIMITS,
    ask,
    mean_gap,
    questions,
)
from graphcredit.collector.policies.engines.vllm_server.server import VllmServer
from graphcredit.collector.policies.model_files import digest_weights, find_model
from graphcredit.store.errors import EngineError

_OURS = "graphcredit/"
_LOADING = f"{_OURS}loading"
"""Label of weights that are not proved yet."""


def hand_over(server: VllmServer, path: str, dtype: Dtype, num_tokens: int) -> str:
    """Make sure that a server has a model's weights, and return the label that they have there.

    Weights with that label are left as they are: they were proved when they were labelled.

    Args:
        server: The server.
        path: Directory of the model, which the server sees under the same path.
        dtype: Number type of the server's arithmetic.
        num_tokens: Size of the vocabulary.

    Raises:
        EngineError: The server fails, or does not have these weights after it has loaded them.
        InputError: The directory has no model that can be loaded.
    """
    label = f"{_OURS}{digest_weights(find_model(path))}"
    found = server.label()
    if found == label:
        return label
    requests = questions(num_tokens)
    # Weights of an unknown label may be the same: the server may have been started with them.
    is_known = found.startswith(_OURS) and found != _LOADING
    before = ask(server, requests, found) if is_known else []
    server.set_label(_LOADING)
    server.load(os.path.abspath(path))
    responses = ask(server, requests, _LOADING)
    if responses == before:
        raise EngineError(
            f"a vLLM server must have other weights after it has loaded others: {server.url} was "
            f"told to load {path}, and samples exactly as before. Look at its log, start it again, "
            "and give the same command again. (In bfloat16 an update can also be too small to "
            "change any weight: then raise the learning rate, or use float32)"
        )
    _require_agreement(server, path, dtype, requests, responses)
    server.set_label(label)
    return label


def _require_agreement(
    server: VllmServer,
    path: str,
    dtype: Dtype,
    requests: list[Request],
    responses: list[Response],
) -> None:
    gap, limit = mean_gap(path, dtype, requests, responses), LIMITS[dtype]
    if not gap <= limit:  # a gap that is no number is none that is small
        raise EngineError(
            f"the log-probabilities of a vLLM server must be those of the weights that it was told "
            f"to load, to within {limit:g} nats: at {server.url}, after loading {path}, they "
            f"differ by {gap:.3g} on average. Its weights are others. Start it again with that "
            "directory as --model, without quantization. On a CPU vLLM cannot reload models with "
            "tied embeddings: use `vllm:` or `hf:` for those"
        )
