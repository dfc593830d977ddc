"""The requests that a vLLM server is sent: for its settings, its weights, and answers.

The server labels its weights with a text, and says with each answer which label the weights had
that sampled it. A server that was started again has forgotten the label.
"""

import time
from collections.abc import Set
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from graphcredit.collector.policies.engines.base import Request, Response, Sampling
from graphcredit.collector.policies.engines.vllm_server.connection import exchange, parse_address
from graphcredit.store.errors import EngineError

_Kind = TypeVar("_Kind")

_QUERY_SECONDS = 120.0
_ANSWER_SECONDS = 1800.0
"""How long an answer may take, the wait for others included."""
_LOAD_SECONDS = 3600.0
_CACHE_ATTEMPTS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """How a server was started, as far as it matters here."""

    dtype: str
    """Number type of the arithmetic: torch.float32, torch.bfloat16."""
    logprobs_mode: str
    """Which log-probabilities it returns."""
    max_model_len: int
    """Most tokens of a prompt and its answer together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Label:
    weight_version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Emptied:
    success: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Token:
    token_id: int
    logprob: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tokens:
    content: tuple[_Token, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Span:
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    token_ids: tuple[int, ...]
    logprobs: _Tokens
    weight_versions: tuple[_Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Completion:
    choices: tuple[_Choice]


class VllmServer:
    """A running vLLM server."""

    def __init__(self, url: str) -> None:
        """Name the server; nothing is sent.

        Raises:
            OptionError: The URL is not one of a server.
        """
        self._address = parse_address(url)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._address.url

    def settings(self) -> ServerSettings:
        """Return how the server was started."""
        path = "/server_info?config_format=json"
        found = exchange(self._address, path, seconds=_QUERY_SECONDS)
        for name in ("vllm_config", "model_config"):
            found = found.get(name) if isinstance(found, dict) else None
        return self._read(ServerSettings, found, path)

    def label(self) -> str:
        """Return the label of its weights."""
        path = "/weight_info"
        found = exchange(self._address, path, seconds=_QUERY_SECONDS)
        return self._read(_Label, found, path).weight_version

    def set_label(self, label: str) -> None:
        """Label its weights."""
        body = {"new_version": label}
        exchange(self._address, "/update_weight_version", body, seconds=_QUERY_SECONDS)

    def load(self, path: str) -> None:
        """Replace its weights by those of a directory, and empty its cache of prefixes.

        Args:
            path: The directory, absolute, as the server's machine sees it.
        """
        body = {"method": "reload_weights", "kwargs": {"weights_path": path}}
        exchange(self._address, "/collective_rpc", body, seconds=_LOAD_SECONDS, attempts=1)
        self._empty_cache()

    def _empty_cache(self) -> None:
        """Empty the cache of prefixes, which holds results of the earlier weights."""
        path = "/reset_prefix_cache"
        for _ in range(_CACHE_ATTEMPTS):
            found = exchange(self._address, path, {}, seconds=_QUERY_SECONDS)
            if self._read(_Emptied, found, path).success:
                return
            time.sleep(1)
        raise EngineError(
            "a vLLM server must have no request under way when its weights are replaced: "
            f"{self.url} has some, and cannot empty its cache of prefixes. Let one loop or "
            "collection at a time use it, then give the same command again"
        )

    def sample(
        self, request: Request, sampling: Sampling, *, end_ids: Set[int], label: str
    ) -> Response:
        """Return the answer to a request, sampled by the weights with this label.

        Args:
            request: The request.
            sampling: The sampling parameters.
            end_ids: Tokens that end an answer.
            label: Label that the weights must have.

        Raises:
            EngineError: The server fails, or other weights than these sampled the answer.
        """
        path = "/inference/v1/generate"
        body = {
            "token_ids": request.prompt_ids,
            "sampling_params": {
                "temperature": sampling.temperature,
                "max_tokens": sampling.max_new_tokens,
                "seed": request.seed,
                "logprobs": 0,
                "detokenize": False,
                # Otherwise the end tokens of the model that it was started with would count too.
                "ignore_eos": True,
                "stop_token_ids": sorted(end_ids),
            },
        }
        found = exchange(self._address, path, body, seconds=_ANSWER_SECONDS)
        (choice,) = self._read(_Completion, found, path).choices
        self._check_label(choice, label)
        self._check_tokens(choice, sampling.max_new_tokens, end_ids)
        return _response(choice, sampling)

    def _check_label(self, choice: _Choice, label: str) -> None:
        labels = {span.version for span in choice.weight_versions}
        if labels != {label}:
            found = " and ".join(sorted(labels)) or "no label"
            raise EngineError(
                f"the weights of the vLLM server must stay those that it was given, {label}: "
                f"{self.url} sampled with {found}. It was started again, or another process gave "
                "it other weights. Its answers were not recorded: let one loop or collection at a "
                "time use it, and give the same command again"
            )

    def _check_tokens(self, choice: _Choice, most: int, end_ids: Set[int]) -> None:
        ids = choice.token_ids
        is_whole = 0 < len(ids) <= most and (len(ids) == most or ids[-1] in end_ids)
        if not is_whole or [token.token_id for token in choice.logprobs.content] != list(ids):
            raise EngineError(
                f"an answer of the vLLM server must have 1 to {most} tokens, end with an end token "
                f"or be of that length, and have the log-probability of each token: {self.url} "
                f"sent the tokens {list(ids)} with {len(choice.logprobs.content)} "
                "log-probabilities. If another process aborts requests there, end it. Then give "
                "the same command again"
            )

    def _read(self, kind: type[_Kind], found: Any, path: str) -> _Kind:
        try:
            return _adapter(kind).validate_python(found)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "it"
            raise EngineError(
                f"the answer of a vLLM server to {path} must be that of vLLM 0.32: in that of "
                f"{self.url}, {where}: {first['msg']}. Use that version"
            ) from error


@cache
def _adapter(kind: type[_Kind]) -> TypeAdapter[_Kind]:
    return TypeAdapter(kind)


def _response(choice: _Choice, sampling: Sampling) -> Response:
    ids = list(choice.token_ids)
    if not sampling.temperature:
        return Response(token_ids=ids, logprobs=[0.0] * len(ids))
    return Response(token_ids=ids, logprobs=[token.logprob for token in choice.logprobs.content])
