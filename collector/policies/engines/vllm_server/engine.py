"""The sampling engine that lets a running vLLM server sample."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

from graphcredit.collector.policies.engines.base import (
    Dtype,
    Request,
    Response,
    Sampling,
    arithmetic,
    max_answer,
)
from graphcredit.collector.policies.engines.configuration import generation_ends, read_config
from graphcredit.collector.policies.engines.vllm_server.hand_over import hand_over
from graphcredit.collector.policies.engines.vllm_server.server import VllmServer
from graphcredit.collector.policies.engines.vllm_server.settings import require_settings
from graphcredit.collector.policies.model_files import require_safetensors
from graphcredit.collector.policies.tokens import end_ids_of, load_tokenizer

_CONNECTIONS = 256
"""Most requests that are open at a time: vLLM makes its batches of them."""


class VllmServerEngine:
    """A model in a vLLM server."""

    def __init__(self, url: str) -> None:
        """Name the server; nothing is sent.

        Raises:
            OptionError: The URL is not one of a server.
        """
        self._server = VllmServer(url)
        self._label = ""
        self.room: int | None = None
        self.tokenizer: Any = None
        self.end_ids: frozenset[int] = frozenset()

    def load(self, path: str, dtype: Dtype = "auto") -> None:
        """Give the server a model's weights unless it has them, and load the tokenizer.

        Raises:
            EngineError: The server fails, was started with other options, or does not have these
                weights after it has loaded them.
        """
        require_safetensors(path)
        kind = cast(Dtype, arithmetic(dtype))
        self.room = require_settings(self._server, kind).max_model_len
        tokenizer, config = load_tokenizer(path), read_config(path)
        self._label = hand_over(self._server, path, kind, len(tokenizer))
        self.tokenizer = tokenizer
        self.end_ids = end_ids_of(tokenizer, generation_ends(path, config))

    def forget(self) -> None:
        """Leave the server's cache: others use it too, and it changes answers by rounding alone."""

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        """Sample an answer to each request."""

        def answer(request: Request) -> Response:
            most = max_answer(request, sampling, self.room)
            return self._server.sample(
                request,
                replace(sampling, max_new_tokens=most),
                end_ids=self.end_ids,
                label=self._label,
            )

        with ThreadPoolExecutor(max(1, min(len(requests), _CONNECTIONS))) as pool:
            return list(pool.map(answer, requests))
