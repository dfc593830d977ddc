"""Log-probabilities and entropies straight from hidden states, without whole rows of logits.

The logits of a chunk of tokens are made a block of the vocabulary at a time, reduced by an online
log-sum-exp (Milakov and Gimelshein, arXiv:1805.02867), dropped, and made again in the backward
pass. So a chunk holds a few blocks, never its whole row of logits for each token.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

_BLOCK = 8192
"""Entries of the vocabulary whose logits exist at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogitRule:
    """How a family makes logits from the head's output x: cap · tanh(scale · x / cap)."""

    scale: float = 1.0
    cap: float | None = None
    """None: scale · x."""

    def apply_(self, outputs: Tensor) -> Tensor:
        """Make logits of the head's outputs, in place."""
        if self.scale != 1.0:
            outputs.mul_(self.scale)
        if self.cap is not None:
            outputs.div_(self.cap).tanh_().mul_(self.cap)
        return outputs

    def slope(self, logits: Tensor) -> Tensor | float:
        """Return the derivative of logits by outputs, from the logits."""
        return self.scale if self.cap is None else self.scale * (1 - (logits / self.cap).square())


def logit_rule(config: Any) -> LogitRule:
    """Return the rule of a model's family.

    Families differ in three fields of the configuration: Granite divides by `logits_scaling`,
    Cohere multiplies by `logit_scale`, Gemma caps softly at `final_logit_softcapping`.
    """
    divisor, factor = getattr(config, "logits_scaling", None), getattr(config, "logit_scale", None)
    return LogitRule(
        scale=(1.0 if factor is None else factor) / (1.0 if divisor is None else divisor),
        cap=getattr(config, "final_logit_softcapping", None),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The last layer of a model, and how its outputs are scored."""

    weight: Tensor
    """[V, H] of a vocabulary of V, in any floating type."""
    bias: Tensor | None
    """[V] or none."""
    rule: LogitRule
    chunk: int
    """Tokens that are scored at once."""


def head_logprobs(
    head: Head, hidden: Tensor, token_ids: Tensor, temperature: Tensor, *, want_entropy: bool
) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each token, and the entropy of its distribution.

    The head's products are in the type of its weight; everything after them is float32, or float64
    for a head of that type.

    Args:
        head: The last layer.
        hidden: [R, H] hidden state that predicts each token, in the type of the weight.
        token_ids: [R] int64, in [0, V).
        temperature: [R] float32, by which logits are divided.
        want_entropy: Whether the entropy has a gradient.

    Returns:
        [R] and [R], float32 (float64).
    """
    options = (head.rule, head.chunk, want_entropy)
    scored: tuple[Tensor, Tensor] = _Scored.apply(  # pyright: ignore[reportAssignmentType]
        hidden, head.weight, head.bias, token_ids, temperature, options
    )
    return scored


class _Scored(torch.autograd.Function):
    """`head_logprobs`; its gradient in hidden states, weight and bias."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        token_ids: Tensor,
        temperature: Tensor,
        options: tuple[LogitRule, int, bool],
    ) -> tuple[Tensor, Tensor]:
        rule, chunk, want_entropy = options
        parts = [
            _score(hidden[rows], weight, bias, token_ids[rows], temperature[rows], rule)
            for rows in _slices(len(hidden), chunk)
        ]
        logprob, entropy, log_total = (torch.cat(each) for each in zip(*parts, strict=True))
        ctx.save_for_backward(hidden, weight, bias, token_ids, temperature, entropy, log_total)
        ctx.rule, ctx.chunk, ctx.want_entropy = rule, chunk, want_entropy
        if not want_entropy:
            ctx.mark_non_differentiable(entropy)
        return logprob, entropy

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        by_logprob, by_entropy = grad_outputs
        hidden, weight, bias, token_ids, temperature, entropy, log_total = ctx.saved_tensors
        wanted: tuple[bool, ...] = ctx.needs_input_grad
        of_hidden = torch.empty_like(hidden) if wanted[0] else None
        of_weight = torch.zeros_like(weight) if wanted[1] else None
        of_bias = torch.zeros_like(bias) if wanted[2] else None
        for rows in _slices(len(hidden), ctx.chunk):
            sums = torch.zeros(hidden[rows].shape, dtype=log_total.dtype, device=hidden.device)
            for block in _slices(len(weight), _BLOCK):
                logits = _logits(hidden[rows], weight[block], _part(bias, block), ctx.rule)
                slope = ctx.rule.slope(logits)
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
                gradient = gradient.mul_(slope).div_(temperature[rows, None]).to(weight.dtype)
                del logits, slope
                if of_hidden is not None:
                    sums += gradient @ weight[block]
                if of_weight is not None:
                    of_weight[block].addmm_(gradient.T, hidden[rows])
                if of_bias is not None:
                    of_bias[block] += gradient.sum(0)
            if of_hidden is not None:
                of_hidden[rows] = sums
        return of_hidden, of_weight, of_bias, None, None, None


def _score(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    token_ids: Tensor,
    temperature: Tensor,
    rule: LogitRule,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, entropy and log-sum-exp of a chunk of tokens. Each [C]."""
    wide = torch.promote_types(weight.dtype, torch.float32)
    largest = hidden.new_full((len(hidden),), -torch.inf, dtype=wide)
    # Sums of e^(z - largest), and of the same times z - largest.
    total, moment = torch.zeros_like(largest), torch.zeros_like(largest)
    chosen = torch.zeros_like(largest)
    for block in _slices(len(weight), _BLOCK):
        logits = _logits(hidden, weight[block], _part(bias, block), rule)
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


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None, rule: LogitRule) -> Tensor:
    """Return a block of logits, at least float32, which the caller may overwrite."""
    outputs = linear(hidden, weight, bias)
    return rule.apply_(outputs.to(torch.promote_types(outputs.dtype, torch.float32)))


def _in_block(token_ids: Tensor, block: slice) -> tuple[Tensor, Tensor]:
    """Return the column of each token in a block, and whether it is in there at all."""
    column = token_ids - block.start
    last = block.stop - block.start - 1
    return column.clamp(0, last), (column >= 0) & (column <= last)


def _part(bias: Tensor | None, block: slice) -> Tensor | None:
    return None if bias is None else bias[block]


def _slices(length: int, size: int) -> Iterator[slice]:
    # A process that has no response tokens scores an empty chunk: it has gradients, too.
    for start in range(0, max(length, 1), size):
        yield slice(start, min(start + size, length))
