"""The sampling engine with vLLM, in this process: for models whose sampling dominates the time.

Importing this file imports vLLM and configures it: it runs in this process, so that weights can be
reloaded between iterations, and it compiles nothing.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

import torch

from graphcredit.collector.policies.engines.base import (
    Dtype,
    Request,
    Response,
    Sampling,
    arithmetic,
    max_answer,
)
from graphcredit.collector.policies.engines.configuration import generation_ends, read_config
from graphcredit.collector.policies.model_files import require_safetensors
from graphcredit.collector.policies.tokens import end_ids_of, load_tokenizer
from graphcredit.store.errors import InputError

# By name: without vLLM installed, a type checker would resolve `import vllm` to this file.
vllm: Any = import_module("vllm")

_GPU_SHARE = 0.45
"""Share of the GPU's memory for vLLM: a loop that trains in this process needs the rest."""

_NOT_SHAPE = frozenset({"_name_or_path", "dtype", "transformers_version"})
"""Keys of a configuration that do not describe the architecture; vLLM gets the dtype separately."""


class VllmEngine:
    """A model in vLLM, on the GPU if there is one."""

    def __init__(self) -> None:
        self._llm: Any = None
        self._shape: dict[str, Any] = {}
        self._dtype = ""
        self.tokenizer: Any = None
        self.end_ids: frozenset[int] = frozenset()

    @property
    def room(self) -> int | None:
        """The longest sequence that vLLM was configured for."""
        return self._llm.model_config.max_model_len

    def load(self, path: str, dtype: Dtype = "auto") -> None:
        """Load a model, or only its weights if one of the same architecture is loaded."""
        require_safetensors(path)
        # Load these from this directory: vLLM keeps those of the model that it opened first.
        tokenizer, config = load_tokenizer(path), read_config(path)
        said = config.to_dict().items()
        shape = {k: v for k, v in said if k not in _NOT_SHAPE and v is not None}
        kind = arithmetic(dtype)
        if self._llm is None:
            self._llm = _open(path, kind)
            self._shape, self._dtype = shape, kind
        elif kind != self._dtype:
            raise InputError(
                "models that vLLM loads one after the other in one process must have the same "
                f"dtype: {path} was requested in {kind}, and the one before in {self._dtype}. Use "
                "another process"
            )
        elif shape != self._shape:
            differing = {k for k in shape | self._shape if shape.get(k) != self._shape.get(k)}
            raise InputError(
                "models that vLLM loads one after the other in one process must have the same "
                f"config.json: that of {path} differs from the one before in "
                f"{', '.join(sorted(differing))}. Use another process"
            )
        else:
            self._reload(path)
        self.tokenizer = tokenizer
        self.end_ids = end_ids_of(tokenizer, generation_ends(path, config))

    def forget(self) -> None:
        """Empty vLLM's cache of prefixes."""
        self._llm.reset_prefix_cache()

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Response]:
        """Sample an answer to each request."""
        outputs = self._llm.generate(
            [{"prompt_token_ids": list(request.prompt_ids)} for request in requests],
            [
                vllm.SamplingParams(
                    temperature=sampling.temperature,
                    max_tokens=max_answer(request, sampling, self.room),
                    seed=request.seed,
                    logprobs=0,
                    detokenize=False,
                    # Otherwise the end tokens of the model that was opened first would count too.
                    ignore_eos=True,
                    stop_token_ids=sorted(self.end_ids),
                )
                for request in requests
            ],
            use_tqdm=False,
        )
        return [_response(output.outputs[0], sampling) for output in outputs]

    def _reload(self, path: str) -> None:
        self._llm.collective_rpc("reload_weights", kwargs={"weights_path": path})
        self._llm.apply_model(_repack_tied_head)
        self._llm.reset_prefix_cache()


def _open(path: str, dtype: str) -> Any:
    on_gpu = torch.cuda.is_available()
    options = {"gpu_memory_utilization": _GPU_SHARE} if on_gpu else {}
    return vllm.LLM(
        model=path,
        dtype=dtype,
        load_format="safetensors",
        trust_remote_code=False,
        enforce_eager=True,
        # Log-probabilities at the temperature; the default is without it.
        logprobs_mode="processed_logprobs",
        distributed_executor_backend="uni",
        disable_log_stats=True,
        **options,
    )


def _repack_tied_head(model: Any) -> None:
    """Update an output head that shares the embedding's weights.

    On the CPU, vLLM packs linear weights when it loads them, but a reload does not pack this head
    again: without this call, log-probabilities would belong to neither model.
    """
    head = getattr(model, "lm_head", None)
    if torch.cuda.is_available() or head is None or not model.config.tie_word_embeddings:
        return
    layers: Any = import_module("vllm.model_executor.layers.utils")
    layers.dispatch_cpu_unquantized_gemm(head, remove_weight=False)


def _response(output: Any, sampling: Sampling) -> Response:
    ids = list(output.token_ids)
    if not sampling.temperature:
        return Response(token_ids=ids, logprobs=[0.0] * len(ids))
    found = zip(ids, output.logprobs, strict=True)
    return Response(token_ids=ids, logprobs=[options[token].logprob for token, options in found])
