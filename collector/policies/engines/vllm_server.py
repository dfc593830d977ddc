"""The sampling engine that lets a vLLM server sample, which the user has started.

The server stays, and its weights are replaced. It labels them with a text, here their digest, and
says with each answer which label the weights had that sampled it. A server that was started again
has forgotten the label, so no answer of other weights is recorded. After it was told to load other
weights it must sample otherwise. That they are the right ones the trainer finds: it compares the
logged log-probabilities with its own before its first update.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphcredit.collector.policies.engines.base import (
    Dtype,
    Request,
    Response,
    Sampling,
    arithmetic,
    max_answer,
)
from graphcredit.collector.policies.engines.configuration import generation_ends, read_config
from graphcredit.collector.policies.engines.http import checked_url, exchange
from graphcredit.collector.policies.model_files import (
    digest_weights,
    find_model,
    require_safetensors,
)
from graphcredit.collector.policies.tokens import end_ids_of, load_tokenizer
from graphcredit.store.errors import EngineError

_CONNECTIONS = 256
"""Most requests that are open at a time: vLLM makes its batches of them."""
_LOGPROBS_MODE = "processed_logprobs"
_OURS = "graphcredit/"
_LOADING = f"{_OURS}loading"
"""Label of weights while they are replaced."""
_QUERY_SECONDS = 120.0
_ANSWER_SECONDS = 1800.0
"""How long an answer may take, the wait for others included."""
_LOAD_SECONDS = 3600.0
_CACHE_ATTEMPTS = 10


class VllmServerEngine:
    """A model in a vLLM server."""

    def __init__(self, url: str) -> None:
        """Name the server; nothing is sent."""
        self._url = checked_url(url)
        self._label = ""
        self.room: int | None = None
        self.tokenizer: Any = None
        self.end_ids: frozenset[int] = frozenset()

    def load(self, path: str, dtype: Dtype = "auto") -> None:
        """Give the server a model's weights unless it has them, and load the tokenizer.

        Raises:
            EngineError: The server fails, or was started with other options.
        """
        require_safetensors(path)
        self.require_settings(dtype)
        tokenizer, config = load_tokenizer(path), read_config(path)
        label = f"{_OURS}{digest_weights(find_model(path))}"
        found = self._ask("/weight_info", "weight_version")
        if found != label:
            # Weights of an unknown label may be the same: it may have been started with them.
            is_known = found.startswith(_OURS) and found != _LOADING
            before = self._probe(found, len(tokenizer)) if is_known else []
            self._replace_weights(path)
            if self._probe(_LOADING, len(tokenizer)) == before:
                raise EngineError(
                    "a vLLM server must have other weights after it has loaded others: "
                    f"{self._url} was told to load {path}, and samples exactly as before. "
                    "Look at its log, start it again, and give the same command again. (In "
                    "bfloat16 an update can also be too small to change any weight: then raise "
                    "the learning rate, or use float32)"
                )
            self._label_weights(label)
        self._label = label
        self.tokenizer = tokenizer
        self.end_ids = end_ids_of(tokenizer, generation_ends(path, config))

    def require_settings(self, dtype: Dtype) -> None:
        """Raise EngineError unless the server was started so that it can sample for us."""
        path = "/server_info?config_format=json"
        settings = self._ask(path, "vllm_config", "model_config")
        mode, kind = settings.get("logprobs_mode"), arithmetic(dtype)
        if mode != _LOGPROBS_MODE:
            raise EngineError(
                "a vLLM server must return the log-probabilities at the temperature: that at "
                f"{self._url} returns {mode}. Start it again with --logprobs-mode "
                f"{_LOGPROBS_MODE}"
            )
        computes_in = str(settings.get("dtype")).removeprefix("torch.")
        if computes_in != kind:
            raise EngineError(
                f"a vLLM server must compute in the dtype of the collection, {kind}: that at "
                f"{self._url} computes in {computes_in}. Start it again with --dtype "
                f"{kind}, or set dtype to {computes_in}"
            )
        self.room = settings.get("max_model_len")

    def forget(self) -> None:
        """Leave the server's cache: others use it too, and it changes answers by rounding alone."""

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        """Sample an answer to each request."""
        with ThreadPoolExecutor(max(1, min(len(requests), _CONNECTIONS))) as pool:
            return list(pool.map(lambda request: self._sample(request, sampling), requests))

    def _replace_weights(self, path: str) -> None:
        """Let the server load weights, and empty its cache of what the earlier ones computed."""
        self._label_weights(_LOADING)
        body = {"method": "reload_weights", "kwargs": {"weights_path": os.path.abspath(path)}}
        exchange(self._url, "/collective_rpc", body, seconds=_LOAD_SECONDS, attempts=1)
        for _ in range(_CACHE_ATTEMPTS):
            if self._ask("/reset_prefix_cache", "success", body={}):
                break
            time.sleep(1)
        else:
            raise EngineError(
                "a vLLM server must have no request under way when its weights are replaced: "
                f"{self._url} has some, and cannot empty its cache of prefixes. Let one "
                "loop or collection at a time use it, then give the same command again"
            )

    def _probe(self, label: str, num_tokens: int) -> list[Response]:
        """Return what weights with this label answer to a fixed request."""
        self._label, self.end_ids = label, frozenset()
        request = Request(prompt_ids=tuple(n % num_tokens for n in range(16)), seed=0)
        return self.generate([request], Sampling(temperature=2.0, max_new_tokens=16))

    def _label_weights(self, label: str) -> None:
        body = {"new_version": label}
        exchange(self._url, "/update_weight_version", body, seconds=_QUERY_SECONDS)

    def _sample(self, request: Request, sampling: Sampling) -> Response:
        most = max_answer(request, sampling, self.room)
        body = {
            "token_ids": request.prompt_ids,
            "sampling_params": {
                "temperature": sampling.temperature,
                "max_tokens": most,
                "seed": request.seed,
                "logprobs": 0,
                "detokenize": False,
                # Otherwise the end tokens of the model that it was started with would count too.
                "ignore_eos": True,
                "stop_token_ids": sorted(self.end_ids),
            },
        }
        path = "/inference/v1/generate"
        answer = exchange(self._url, path, body, seconds=_ANSWER_SECONDS)
        try:
            (choice,) = answer["choices"]
            labels = {span["version"] for span in choice["weight_versions"]}
            ids, tokens = list(choice["token_ids"]), choice["logprobs"]["content"]
            scored = [token["token_id"] for token in tokens]
            logprobs = [float(token["logprob"]) for token in tokens]
        except (KeyError, TypeError, ValueError) as error:
            raise self._not_vllm(path, error) from error
        self._check(labels, ids, scored, most)
        return Response(
            token_ids=ids, logprobs=logprobs if sampling.temperature else [0.0] * len(ids)
        )

    def _check(self, labels: set[str], ids: list[int], scored: list[int], most: int) -> None:
        """Raise EngineError unless the right weights sampled a whole answer."""
        if labels != {self._label}:
            raise EngineError(
                f"the weights of the vLLM server must stay those that it was given, {self._label}: "
                f"{self._url} sampled with {' and '.join(sorted(labels)) or 'no label'}. "
                "It was started again, or another process gave it other weights. Its answers were "
                "not recorded: let one loop or collection at a time use it, and give the same "
                "command again"
            )
        is_whole = 0 < len(ids) <= most and (len(ids) == most or ids[-1] in self.end_ids)
        if not is_whole or scored != ids:
            raise EngineError(
                f"an answer of the vLLM server must have 1 to {most} tokens, end with an end token "
                f"or be of that length, and have the log-probability of each token: "
                f"{self._url} sent the tokens {ids} with {len(scored)} log-probabilities. "
                "If another process aborts requests there, end it. Then give the same command again"
            )

    def _ask(self, path: str, *names: str, body: Any = None) -> Any:
        """Return a field of the server's answer, down a path of names."""
        answer = exchange(self._url, path, body, seconds=_QUERY_SECONDS)
        try:
            for name in names:
                answer = answer[name]
        except (KeyError, TypeError) as error:
            raise self._not_vllm(path, error) from error
        return answer

    def _not_vllm(self, path: str, error: Exception) -> EngineError:
        return EngineError(
            f"the answer of a vLLM server to {path} must be that of vLLM 0.32: in that of "
            f"{self._url}, {error!r} is wrong. Use that version"
        )
