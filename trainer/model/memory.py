"""Estimate the memory of a training before it starts, by part.

A forward and a backward pass is measured without making either: the model is on the meta device,
where tensors have shapes and no data. So the code that trains says itself what it keeps, whatever
the architecture, and a model of any size is measured in seconds.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AttentionInterface, AttentionMaskInterface

from graphcredit.trainer.batching.plan import MicroBatchSize
from graphcredit.trainer.model.layers import count_weights, decoder_layers
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.packed_attention import Segments, gathered, set_attention

_META_ATTENTION = "graphcredit_meta"
_FLOAT32 = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryEstimate:
    """Bytes of one process. They leave out what allocators, kernels and libraries take.

    Compiled layers keep less than is said here: the compiler computes some of it again.
    """

    parameters: int
    """Its shard of the float32 weights."""
    gathered: int
    """Layers that are whole while they compute, in the type of the arithmetic; 0 without shards."""
    gradients: int
    """Float32."""
    moments: int
    """Its shard of AdamW's two moments."""
    activations: int | None
    """What a forward and a backward pass over the heaviest micro-batch hold at most, without
    logits; None where they depend on data (mixtures of experts, images)."""
    logits: int | None
    """What the head adds to that peak."""
    reference: int
    """Its shard of another reference's float32 weights, which are there before the first update,
    without gradients and moments; else 0."""
    loading: int
    """Host memory of the first process while it has a whole model, whose shards it hands out; 0
    for a single process in float32."""
    checkpoint: int
    """Host memory that writing a checkpoint takes: a file's tensors and its bytes. There are no
    gradients then."""

    @property
    def on_device(self) -> int:
        """Bytes on the device at the peak of an update, or of the pass of the reference."""
        return max(self._all, self.gathered + self._weights)

    @property
    def on_cpu(self) -> int:
        """Bytes at the peak of a training on the CPU, where host and device are one."""
        writing = self.parameters + self.moments + self.checkpoint
        loading = self.loading + self._weights
        return max(self._all, self.gathered + self._weights, writing, loading)

    @property
    def _weights(self) -> int:
        return self.parameters + self.reference

    @property
    def _all(self) -> int:
        passing = (self.activations or 0) + (self.logits or 0)
        return self.parameters + self.moments + self.gathered + self.gradients + passing


def estimate_memory(
    scorer: Scorer,
    sizes: Iterable[MicroBatchSize],
    *,
    num_processes: int,
    dtype: str,
    file_bytes: int,
    reference: Scorer | None = None,
    has_images: bool = False,
) -> MemoryEstimate:
    """Return the memory that a training takes in each process.

    Args:
        scorer: The model on the meta device, in float32, with its adapters.
        sizes: Of the micro-batches.
        num_processes: Processes that share the training.
        dtype: Type of the arithmetic: float32 or bfloat16.
        file_bytes: Most bytes of a file of a checkpoint, which is put together in memory.
        reference: Another reference on the meta device, if there is one.
        has_images: Whether steps have images, whose size is seen only when they are read.
    """
    is_sharded = num_processes > 1 or dtype == "bfloat16"
    num_others = 0 if reference is None else count_weights(reference.parameters())
    num_all, num_trained = count_weights(scorer.parameters()), count_weights(_trained(scorer))
    layers = [count_weights(layer.parameters()) for layer in decoder_layers(scorer)]
    # One process keeps whole layers; several hold the ends, a layer, and the next one on its way.
    num_whole = num_all if num_processes == 1 else num_all - sum(layers) + 2 * max(layers)
    num_mine = -(-num_trained // num_processes)
    kind: torch.dtype = getattr(torch, dtype)
    activations, logits = (None, None) if has_images else _passes(scorer.to(kind), sizes)
    return MemoryEstimate(
        parameters=_FLOAT32 * -(-num_all // num_processes),
        gathered=kind.itemsize * num_whole if is_sharded else 0,
        gradients=_FLOAT32 * num_mine,
        moments=2 * _FLOAT32 * num_mine,
        activations=activations,
        logits=logits,
        reference=_FLOAT32 * -(-num_others // num_processes),
        loading=_FLOAT32 * max(num_all, num_others) * is_sharded,
        checkpoint=2 * min(file_bytes, 3 * _FLOAT32 * num_mine),
    )


def _passes(scorer: Scorer, sizes: Iterable[MicroBatchSize]) -> tuple[int | None, int | None]:
    """Return the bytes of activations and of logits in the heaviest micro-batch."""
    listed = sorted({*sizes})
    candidates = {max(listed, key=lambda size: size[field]) for field in range(3)}
    try:
        peak, heaviest = max((pass_bytes(scorer, size), size) for size in candidates)
        body = pass_bytes(scorer, heaviest._replace(num_responses=1))
    except (RuntimeError, NotImplementedError):
        return None, None
    return body, peak - body


def _trained(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.requires_grad]


def pass_bytes(scorer: Scorer, size: MicroBatchSize) -> int:
    """Return the most bytes that a pass holds beside weights and gradients, in one process.

    Args:
        scorer: A model on the meta device, in the type of the arithmetic.
        size: Of the micro-batch.

    Raises:
        RuntimeError: What the model does next depends on data, as the choice of experts does.
    """
    AttentionInterface.register(_META_ATTENTION, cast("Any", _attention))
    AttentionMaskInterface.register(_META_ATTENTION, cast("Any", lambda **_: None))
    set_attention(scorer.causal_lm, _META_ATTENTION)
    _run(scorer, size)
    # The gradients are there now, as they are from the second micro-batch on.
    with _LiveBytes() as live:
        _run(scorer, size)
    return live.peak


def _run(scorer: Scorer, size: MicroBatchSize) -> None:
    tokens = _numbers(size.num_tokens)
    responses = _numbers(size.num_responses)
    is_shared = size.num_keys > size.num_tokens
    segments = Segments(
        bounds=_numbers(2),
        longest=size.num_tokens,
        key_bounds=_numbers(2),
        longest_keys=size.num_keys,
        key_positions=_numbers(size.num_keys) if is_shared else None,
    )
    temperature = torch.ones(size.num_responses, device="meta")
    with _AnyValue():
        scored = scorer(tokens, tokens, segments, responses, responses, temperature, False)
        scored.logprob.sum().backward()


def _numbers(count: int) -> Tensor:
    return torch.zeros(count, dtype=torch.int64, device="meta")


class _AnyValue(TorchDispatchMode):
    """Answers with False where a meta tensor is asked for its value: positions look unpacked."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default and args[0].dtype == torch.bool:
            return False
        return func(*args, **(kwargs or {}))


class _LiveBytes(TorchDispatchMode):
    """Counts the bytes of the tensors that operations return, for as long as they live."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[int] = set()
        self._now = 0
        self.peak = 0
        """The most bytes at one time."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        inputs = {_key(each) for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            # What an operation changes in place or only views was there before.
            if isinstance(tensor, Tensor) and _key(tensor) not in self._known | inputs:
                storage, key = tensor.untyped_storage(), _key(tensor)
                self._known.add(key)
                self._now += storage.nbytes()
                self.peak = max(self.peak, self._now)
                weakref.finalize(storage, self._drop, key, storage.nbytes())
        return result

    def _drop(self, key: int, num_bytes: int) -> None:
        self._known.discard(key)
        self._now -= num_bytes


def _key(tensor: Tensor) -> int:
    return StorageWeakRef(tensor.untyped_storage()).cdata


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: None,
    *,
    key_positions: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Hold what a fused kernel holds: its inputs, its output and a number for each query."""
    if key_positions is not None:
        key, value = gathered(key, key_positions), gathered(value, key_positions)
    kernel: Callable[..., Any] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output = kernel(query, key, value, 0.0, True)[0]
    return output.transpose(1, 2).contiguous(), None
