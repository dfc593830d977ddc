"""Measure the memory of a forward and a backward pass without making either.

The model is on the meta device, where tensors have shapes and no data. So the code that trains says
itself what it keeps, whatever the architecture, and a model of any size is measured in seconds.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AttentionInterface, AttentionMaskInterface

from graphcredit.trainer.batching.plan import MicroBatchSize
from graphcredit.trainer.model.context import ResponseSlice, TokenSlice, across_processes
from graphcredit.trainer.model.logprobs import Scorer
from graphcredit.trainer.model.packed_attention import Segments, set_attention

_META_ATTENTION = "graphcredit_meta"


def pass_bytes(scorer: Scorer, size: MicroBatchSize, *, context_size: int = 1) -> int:
    """Return the most bytes that a pass holds beside weights and gradients, in one process.

    Args:
        scorer: A model on the meta device, in the type of the arithmetic.
        size: Of the micro-batch.
        context_size: Processes that run it together. This one has a slice that is all of responses,
            if there are as many.

    Raises:
        RuntimeError: What the model does next depends on data, as the choice of experts does.
    """
    AttentionInterface.register(_META_ATTENTION, cast("Any", across_processes(_attention)))
    AttentionMaskInterface.register(_META_ATTENTION, cast("Any", lambda **_: None))
    set_attention(scorer.causal_lm, _META_ATTENTION)
    _run(scorer, size, context_size)
    # The gradients are there now, as they are from the second micro-batch on.
    with _LiveBytes() as live:
        _run(scorer, size, context_size)
    return live.peak


@dataclass(frozen=True, kw_only=True, slots=True)
class _Elsewhere:
    """A context group whose other processes are not there."""

    size: int
    rank: int = 0

    def exchange(self, parts: Tensor) -> Tensor:
        return torch.empty_like(parts)

    def gather(self, part: Tensor) -> Tensor:
        return part.new_empty((self.size * len(part), *part.shape[1:]))


def _run(scorer: Scorer, size: MicroBatchSize, context_size: int) -> None:
    context = _Elsewhere(size=context_size)
    part = TokenSlice(context=context, num_tokens=size.num_tokens)
    # Equal steps have more response tokens than there are tokens.
    count = min(size.num_responses, max(part.length, -(-size.num_responses // context_size)))
    tokens, responses = _numbers(part.length), _numbers(count)
    place = _numbers(size.num_responses)
    whole = ResponseSlice(context=context, most=count, place=place)
    is_sliced = context_size > 1
    is_shared = size.num_keys > size.num_tokens
    segments = Segments(
        bounds=_numbers(2),
        longest=size.num_tokens,
        key_bounds=_numbers(2),
        longest_keys=size.num_keys,
        key_positions=_numbers(size.num_keys) if is_shared else None,
        token_slice=part if is_sliced else None,
    )
    given = (responses, responses, torch.ones(count, device="meta"))
    wanted = (False, False, None, whole if is_sliced else None)
    with _AnyValue():
        scored = scorer(tokens, tokens, segments, *given, *wanted)
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
                self._add(tensor)
        return result

    def _add(self, tensor: Tensor) -> None:
        storage, key = tensor.untyped_storage(), _key(tensor)
        self._known.add(key)
        self._now += storage.nbytes()
        self.peak = max(self.peak, self._now)
        weakref.finalize(storage, self._drop, key, storage.nbytes())

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
        key, value = (each.index_select(2, key_positions) for each in (key, value))
    kernel: Callable[..., Any] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output = kernel(query, key, value, 0.0, True)[0]
    return output.transpose(1, 2).contiguous(), None
