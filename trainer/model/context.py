"""Context parallelism: several processes run one micro-batch together, a slice of its tokens each.

Everything but attention works on one token at a time, so a process runs its own slice. For
attention the processes exchange "own tokens, all heads" for "all tokens, a share of the heads", and
back (DeepSpeed-Ulysses, arXiv 2309.14509). A response is scored where the tokens are that predict
it; then every process gets the scores of all, and computes the same loss.

So the gradient of a loss is the sum of what all processes of the group find: each goes backward
from its own scores, and from what others have made of its tokens, which comes back by exchange.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from graphcredit.store.errors import InputError
from graphcredit.trainer.data.ragged import Ints


class ContextGroup(Protocol):
    """The N processes that run a micro-batch together."""

    @property
    def rank(self) -> int:
        """This process, from 0 on; it has the slice of this number."""
        ...

    @property
    def size(self) -> int:
        """N."""
        ...

    def exchange(self, parts: Tensor) -> Tensor:
        """Send part n of [N, ...] to process n; return [N, ...] what each process sent here."""
        ...

    def gather(self, part: Tensor) -> Tensor:
        """Return [N * n, ...] the parts [n, ...] of all processes, one after the other."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSlice:
    """One process' part of the T tokens of a micro-batch: t = ceil(T / N) of them, in order.

    What the last slices lack is filled up with zeros, so that all processes do the same.
    """

    context: ContextGroup
    num_tokens: int
    """T."""

    @property
    def length(self) -> int:
        """Tokens of each slice, t."""
        return -(-self.num_tokens // self.context.size)

    @property
    def first(self) -> int:
        """Where this process' slice begins."""
        return self.context.rank * self.length

    def own(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return [t] this process' part of [T] values."""
        filled = np.pad(values, (0, self._num_missing))
        return filled[self.first : self.first + self.length]

    def whole(self, values: Tensor) -> Tensor:
        """Return [T, ...] of the processes' [t, ...] values; a gradient reaches the own ones."""
        return gathered(values, self.context)[: self.num_tokens]

    def own_heads(self, values: Tensor) -> Tensor:
        """Exchange all heads of the own tokens for a share of the heads of all tokens.

        Args:
            values: [1, H, t, D]. Where N does not divide H, each head is repeated.

        Returns:
            [1, lcm(H, N) / N, T, D].
        """
        size, num_heads = self.context.size, values.shape[1]
        repeated = values[0].repeat_interleave(math.lcm(num_heads, size) // num_heads, dim=0)
        found = _exchanged(repeated.unflatten(0, (size, -1)), self.context)
        return found.transpose(0, 1).flatten(1, 2)[None, :, : self.num_tokens]

    def own_tokens(self, values: Tensor) -> Tensor:
        """Exchange [1, T, h, D] a share of the heads for [1, t, N * h, D] the own tokens."""
        filled = pad(values[0], (0, 0, 0, 0, 0, self._num_missing))
        found = _exchanged(filled.unflatten(0, (-1, self.length)), self.context)
        return found.transpose(0, 1).flatten(1, 2)[None]

    @property
    def _num_missing(self) -> int:
        return self.length * self.context.size - self.num_tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseSlice:
    """Which of the R response tokens of a micro-batch each process scores."""

    context: ContextGroup
    most: int
    """Response tokens of the process that has the most."""
    place: Tensor
    """[R] int64, where each token is among the processes' [N * most] scores."""

    def whole(self, values: Tensor) -> Tensor:
        """Return [R] of the processes' own values; a gradient reaches the own ones."""
        filled = pad(values, (0, self.most - len(values)))
        return gathered(filled, self.context)[self.place]


def places_of(predictor: Ints, tokens: TokenSlice) -> tuple[Ints, Ints, int]:
    """Return which response tokens this process scores, and where each will be.

    Args:
        predictor: [R] positions in [0, T).
        tokens: The slice.

    Returns:
        The own ones among R; [R] as `ResponseSlice.place`; and its `most`.
    """
    owner = predictor // tokens.length
    counts = np.bincount(owner, minlength=tokens.context.size)
    order = np.argsort(owner, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    most = int(counts.max())
    place = owner * most + rank - (np.cumsum(counts) - counts)[owner]
    return np.flatnonzero(owner == tokens.context.rank), place, most


def across_processes(attention: Callable[..., tuple[Tensor, None]]) -> Callable[..., Any]:
    """Return an attention function of transformers that also takes a slice of the tokens.

    Args:
        attention: Of all tokens; any number of heads.
    """

    def attend(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        *,
        token_slice: TokenSlice | None = None,
        **others: Any,
    ) -> tuple[Tensor, None]:
        if token_slice is None:
            return attention(module, query, key, value, mask, **others)
        refuse_heads(query.shape[1], token_slice.context.size, type(module).__name__)
        parts = map(token_slice.own_heads, (query, key, value))
        output, weights = attention(module, *parts, mask, **others)
        return token_slice.own_tokens(output), weights

    return attend


def refuse_heads(num_heads: int, size: int, where: str) -> None:
    """Raise InputError if a number of attention heads cannot be shared by so many processes."""
    if num_heads % size:
        possible = [n for n in range(1, num_heads + 1) if num_heads % n == 0]
        raise InputError(
            f"context_parallel must divide the number of attention heads, because each process "
            f"computes the attention of as many: got {size}, and {where} has {num_heads} heads. "
            f"Take one of {', '.join(map(str, possible))}"
        )


def gathered(part: Tensor, context: ContextGroup) -> Tensor:
    """Return `ContextGroup.gather` of a part, whose gradient is that of its place alone."""
    return cast("Tensor", _Gather.apply(part, context))


def _exchanged(parts: Tensor, context: ContextGroup) -> Tensor:
    return cast("Tensor", _Exchange.apply(parts, context))


class _Exchange(torch.autograd.Function):
    """`ContextGroup.exchange`: its gradients go back the same way."""

    @staticmethod
    def forward(ctx: Any, parts: Tensor, context: ContextGroup) -> Tensor:
        ctx.context = context
        return context.exchange(parts.contiguous())

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        return ctx.context.exchange(grad_outputs[0].contiguous()), None


class _Gather(torch.autograd.Function):
    """`ContextGroup.gather`: every process computes the same of all parts, and each has its own."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, context: ContextGroup) -> Tensor:
        ctx.first, ctx.length = context.rank * len(part), len(part)
        return context.gather(part.contiguous())

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        return grad_outputs[0][ctx.first : ctx.first + ctx.length], None
