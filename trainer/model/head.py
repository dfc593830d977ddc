"""Log-probabilities and entropies straight from hidden states, without whole rows of logits.

The logits of a chunk of tokens are made a block of the vocabulary at a time, reduced by an online
log-sum-exp (Milakov and Gimelshein, arXiv:1805.02867), dropped, and made again in the backward
pass. So a chunk holds a few blocks, never its whole row of logits for each token.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

_BLOCK = 8192
"""Entries of the vocabulary whose logits exist at once."""


_CHUNK = 1024
"""Tokens that are scored at once."""


def head_logprobs(
    weight: Tensor, hidden: Tensor, token_ids: Tensor, temperature: Tensor, *, want_entropy: bool
) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each token, and the entropy of its distribution.

    The head's products are in the type of its weight; everything after them is float32, or float64
    for a head of that type.

    Args:
        weight: [V, H] of the last layer, for a vocabulary of V, in any floating type.
        hidden: [R, H] hidden state that predicts each token, in the type of the weight.
        token_ids: [R] int64, in [0, V).
        temperature: [R] float32, by which logits are divided.
        want_entropy: Whether the entropy has a gradient.

    Returns:
        [R] and [R], float32 (float64).
    """
    scored: tuple[Tensor, Tensor] = _Scored.apply(  # pyright: ignore[reportAssignmentType]
        hidden, weight, token_ids, temperature, want_entropy
    )
    return scored


class _Scored(torch.autograd.Function):
    """`head_logprobs`; its gradient in hidden states and weight."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        token_ids: Tensor,
        temperature: Tensor,
        want_entropy: bool,
    ) -> tuple[Tensor, Tensor]:
        parts = [
            _score(hidden[rows], weight, token_ids[rows], temperature[rows])
            for rows in _slices(len(hidden), _CHUNK)
        ]
        logprob, entropy, log_total = (torch.cat(each) for each in zip(*parts, strict=True))
        ctx.save_for_backward(hidden, weight, token_ids, temperature, entropy, log_total)
        ctx.want_entropy = want_entropy
        if not want_entropy:
            ctx.mark_non_differentiable(entropy)
        return logprob, entropy

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        by_logprob, by_entropy = grad_outputs
        hidden, weight, token_ids, temperature, entropy, log_total = ctx.saved_tensors
        wanted: tuple[bool, ...] = ctx.needs_input_grad
        of_hidden = torch.empty_like(hidden) if wanted[0] else None
        of_weight = torch.zeros_like(weight) if wanted[1] else None
        for rows in _slices(len(hidden), _CHUNK):
            sums = torch.zeros(hidden[rows].shape, dtype=log_total.dtype, device=hidden.device)
            for block in _slices(len(weight), _BLOCK):
                logits = _logits(hidden[rows], weight[block])
                # Here logits become log-probabilities, then the gradient by scaled logits:
                # g (1[token] - p) - h p (log p + H) with g and h those of the two results.
                gradient = logits.div_(temperature[rows, None]).sub_(log_total[rows, None])
                factor = by_logprob[rows, None]
                if ctx.want_entropy:
                    factor = (gradient + entropy[rows, None]).mul_(by_entropy[rows, None])
                    factor.add_(by_logprob[rows, None])
                gradient.exp_().mul_(factor).neg_()
                del factor
                column, is_here = _in_block(token_ids[rows], block)
                chosen = torch.where(is_here, by_logprob[rows], 0.0)
                gradient.scatter_add_(1, column[:, None], chosen[:, None])
                gradient = gradient.div_(temperature[rows, None]).to(weight.dtype)
                del logits
                if of_hidden is not None:
                    sums += gradient @ weight[block]
                if of_weight is not None:
                    of_weight[block].addmm_(gradient.T, hidden[rows])
            if of_hidden is not None:
                of_hidden[rows] = sums
        return of_hidden, of_weight, None, None, None


def _score(
    hidden: Tensor, weight: Tensor, token_ids: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, entropy and log-sum-exp of a chunk of tokens. Each [C]."""
    wide = torch.promote_types(weight.dtype, torch.float32)
    largest = hidden.new_full((len(hidden),), -torch.inf, dtype=wide)
    # Sums of e^(z - largest), and of the same times z - largest.
    total, moment = torch.zeros_like(largest), torch.zeros_like(largest)
    chosen = torch.zeros_like(largest)
    for block in _slices(len(weight), _BLOCK):
        logits = _logits(hidden, weight[block])
        logits.div_(temperature[:, None])
        column, is_here = _in_block(token_ids, block)
        chosen = torch.where(is_here, logits.gather(1, column[:, None])[:, 0], chosen)
        higher = torch.maximum(largest, logits.amax(1))
        shrink = (largest - higher).exp()
        shift = torch.where(total > 0, largest - higher, 0.0)
        moment = (moment + shift * total) * shrink
        total = total * shrink
        largest = higher
        shares = logits.sub_(largest[:, None]).exp()
        total += shares.sum(1)
        moment += logits.mul_(shares).sum(1)
        del logits, shares
    log_of_sum = total.log()
    log_total = largest + log_of_sum
    return chosen - log_total, log_of_sum - moment / total, log_total


def _logits(hidden: Tensor, weight: Tensor) -> Tensor:
    """Return a block of logits, at least float32, which the caller may overwrite."""
    outputs = linear(hidden, weight)
    return outputs.to(torch.promote_types(outputs.dtype, torch.float32))


def _in_block(token_ids: Tensor, block: slice) -> tuple[Tensor, Tensor]:
    """Return the column of each token in a block, and whether it is in there at all."""
    column = token_ids - block.start
    last = block.stop - block.start - 1
    return column.clamp(0, last), (column >= 0) & (column <= last)


def _slices(length: int, size: int) -> Iterator[slice]:
    # A process that has no response tokens scores an empty chunk: it has gradients, too.
    for start in range(0, max(length, 1), size):
        yield slice(start, min(start + size, length))
