"""Masks of the policy loss: tokens that do not take part in it, though they were sampled.

A masked token keeps its share of the loss, which is 0 then; the shares of the others do not grow.
Divergence and entropy bonus are not masked. Masks have no gradient.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphcredit.store.options import Positive
from graphcredit.trainer.loss.inputs import TokenInputs
from graphcredit.trainer.loss.segments import segment_mean
from graphcredit.trainer.options import EntropyShare, LossOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class Masks:
    """Which tokens are masked.

        off-policy   tokens of a response with A < 0 and mean of (behaviour - logprob) > off_policy
        entropy      all but the ceil(share · n) tokens of the highest entropy of each response

    A bad response that the policy has left already is pushed further for nothing, and its ratios
    are the least reliable: DeepSeek-V3.2, arXiv 2512.02556, the masking of off-policy sequences.
    Few tokens decide how a response goes on, and those are where the policy hesitates: arXiv
    2506.01939 learns from the fifth of a batch with the highest entropy. Here it is of each
    response, so that packing changes nothing; of equal entropies the earlier token counts as
    higher.
    """

    off_policy: Positive | None = None
    """Nats per token; None masks none."""
    entropy_share: EntropyShare | None = None
    """Share of a response's tokens; None masks none."""


def masks_of(options: LossOptions) -> Masks:
    """Return the masks that a training applies."""
    return Masks(off_policy=options.off_policy_limit, entropy_share=options.entropy_share)


def policy_mask(tokens: TokenInputs, masks: Masks) -> tuple[Tensor, dict[str, Tensor]]:
    """Return where the policy loss counts, and the masks to average over tokens.

    Args:
        tokens: [R] scored tokens; with `entropy` if that masks.
        masks: The masks.

    Returns:
        [R] bool, true where it counts; and name to [R] bool, true where a mask is active.
    """
    masked: dict[str, Tensor] = {}
    if masks.off_policy is not None:
        gap = (tokens.behaviour - tokens.logprob).detach()
        far = segment_mean(gap, tokens.segment, tokens.num_segments) > masks.off_policy
        masked["off_policy_masked"] = far & (tokens.advantage < 0)
    if masks.entropy_share is not None:
        masked["entropy_masked"] = ~_is_high(tokens, masks.entropy_share)
    kept = torch.ones_like(tokens.is_scored)
    for mask in masked.values():
        kept = kept & ~mask
    return kept, masked


def _is_high(tokens: TokenInputs, share: float) -> Tensor:
    """Return [R] bool: the token is of the share of its response with the highest entropy."""
    assert tokens.entropy is not None
    by_entropy = torch.argsort(tokens.entropy.detach(), descending=True, stable=True)
    order = by_entropy[torch.argsort(tokens.segment[by_entropy], stable=True)]
    count = torch.bincount(tokens.segment, minlength=tokens.num_segments)
    start = count.cumsum(0) - count
    rank = torch.empty_like(tokens.segment)
    rank[order] = torch.arange(len(order), device=rank.device) - start[tokens.segment[order]]
    return rank < torch.ceil(share * count.double())[tokens.segment]
