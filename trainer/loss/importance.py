"""Importance weights for the gap between the policy that sampled and the one that is trained.

The sampler computes other log-probabilities than the trainer for the same weights (kernels,
precision, another batch), and often has older weights. ρ = exp(old - behaviour) corrects for that,
where `old` is the trainer's log-probability at the start of an iteration. If `old` *is*
`behaviour` (bypass), ρ is 1, and the objective's own ratio, if it has one, covers the gap. So the
gap is corrected once, never twice.
"""

import torch
from torch import Tensor

from graphcredit.trainer.loss.inputs import TokenInputs, bounded
from graphcredit.trainer.loss.segments import segment_mean, segment_sum
from graphcredit.trainer.options import CorrectionMode, LossOptions

_OVER_RESPONSE = {"sequence": segment_sum, "geometric": segment_mean}
"""How the sequence and geometric levels reduce a response's differences to one number."""


def importance_weights(
    tokens: TokenInputs, options: LossOptions
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the weight of each token's part of the policy loss, and values to average over tokens.

    Divergence and entropy are not weighed. `correction` names a level and what is done to ρ:

        token       ρ_t = exp(old - behaviour)
        sequence    ρ = exp(sum over the response of (old - behaviour)), the same for its tokens
        geometric   ρ = exp(mean over the response of (old - behaviour)), the same for its tokens
        truncate    min(ρ, high)
        mask        ρ if low ≤ ρ ≤ high, else 0

    A sequence is the response of one step, its scored tokens. Its sum is the ratio of the
    probabilities of the whole response, which TRL and verl call by this name too; the mean keeps ρ
    comparable for short and long ones. Logarithms are cut to ±20, after they are summed.
    With "none" and "bypass" every weight is 1. Weights are constants: no gradient flows through
    them. `token-truncate` is TIS, `token-mask` IcePop (arXiv 2510.18855).

    Args:
        tokens: [R] scored tokens.
        options: `correction` and its bounds: low and high.

    Returns:
        [R] weights without gradient; and name to [R] values: the weight and its square, which
        give the effective sample size (Σw)² / Σw², and where ρ was cut or masked.
    """
    mode, high = options.correction, options.correction_high
    ratio = _ratio(tokens, mode)
    is_high = ratio > high
    if mode.endswith("truncate"):
        is_cut, weight = is_high, ratio.clamp(max=high)
    elif mode.endswith("mask"):
        is_cut = is_high | (ratio < options.correction_low)
        weight = ratio.masked_fill(is_cut, 0.0)
    else:
        is_cut, weight = torch.zeros_like(is_high), ratio
    stats = {
        "correction_mean": weight,
        "correction_square": weight.square(),
        "correction_cut": is_cut,
    }
    return weight, stats


def _ratio(tokens: TokenInputs, mode: CorrectionMode) -> Tensor:
    """Return ρ. [R]."""
    if mode in ("none", "bypass"):
        return torch.ones_like(tokens.old)
    gap = (tokens.old - tokens.behaviour).detach()
    if over_response := _OVER_RESPONSE.get(mode.partition("-")[0]):
        gap = over_response(gap, tokens.segment, tokens.num_segments)
    return bounded(gap).exp()
