"""A stand-in on the CPU for the kernel of packed attention, behind torch's own operators.

Everything between a model and the kernel is as on a GPU: the choice of the kernel, its arguments,
autograd, and what `torch.compile` sees of it. The arithmetic is that of the definition.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.attention import varlen


class _Run(NamedTuple):
    """A run of queries, the keys they attend to, and how much to each."""

    rows: slice
    keys: slice
    query: Tensor
    key: Tensor
    value: Tensor
    share: Tensor


def install() -> None:
    """Register the stand-in, for this process."""
    varlen._varlen_attn.register_kernel("cpu", _forward)
    varlen._varlen_attn_backward.register_kernel("cpu", _backward)


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    is_causal: bool = False,
    scale: float | None = None,
    window_size: list[int] | None = None,
    *others: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """What the kernel demands is demanded: half precision, int32 bounds, the longest lengths."""
    del is_causal, others
    assert {query.dtype, key.dtype, value.dtype} == {torch.bfloat16}
    assert {cu_seq_q.dtype, cu_seq_k.dtype} == {torch.int32}
    assert int(cu_seq_q.diff().max()) <= max_q
    assert int(cu_seq_k.diff().max()) <= max_k
    output = torch.empty_like(query, memory_format=torch.contiguous_format)
    for run in _runs(query, key, value, cu_seq_q, cu_seq_k, scale, window_size):
        output[run.rows] = (run.share @ run.value).transpose(0, 1).to(output.dtype)
    total, num_heads = query.shape[:2]
    return output, torch.zeros(num_heads, total), torch.zeros(2, dtype=torch.uint64)


def _backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    is_causal: bool,
    rng_state: Tensor,
    scale: float | None = None,
    window_size: list[int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    del out, lse, max_q, max_k, is_causal, rng_state
    found = [torch.zeros_like(each, dtype=torch.float32) for each in (query, key, value)]
    factor = scale or query.shape[-1] ** -0.5
    for run in _runs(query, key, value, cu_seq_q, cu_seq_k, scale, window_size):
        slope = grad_out[run.rows].transpose(0, 1).float()
        of_share = slope @ run.value.mT
        of_score = factor * run.share * (of_share - (of_share * run.share).sum(-1, keepdim=True))
        found[0][run.rows] += (of_score @ run.key).transpose(0, 1)
        for into, part in ((found[1], of_score.mT @ run.query), (found[2], run.share.mT @ slope)):
            into[run.keys] += part.unflatten(0, (key.shape[1], -1)).sum(1).transpose(0, 1)
    of_query, of_key, of_value = (each.to(query.dtype) for each in found)
    return of_query, of_key, of_value


def _runs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    scale: float | None,
    window_size: list[int] | None,
) -> Iterator[_Run]:
    """Yield the runs; heads first, in float32, each key head as often as it is shared."""
    num_shared = query.shape[1] // key.shape[1]
    left = -1 if window_size is None else window_size[0]
    for number in range(len(cu_seq_q) - 1):
        rows, keys = (
            slice(*bounds[number : number + 2].tolist()) for bounds in (cu_seq_q, cu_seq_k)
        )
        q = query[rows].transpose(0, 1).float()
        k, v = (
            each[keys].transpose(0, 1).float().repeat_interleave(num_shared, 0)
            for each in (key, value)
        )
        before = k.shape[1] - q.shape[1]
        sees = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(before)
        sees = sees if left < 0 else sees.triu(before - left)
        scores = (scale or q.shape[-1] ** -0.5) * q @ k.mT
        yield _Run(rows, keys, q, k, v, scores.masked_fill(~sees, -torch.inf).softmax(-1))
