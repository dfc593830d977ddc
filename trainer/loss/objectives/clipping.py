"""The pessimistic clip, which PPO applies to tokens and GSPO to whole responses."""

import torch
from torch import Tensor

from graphcredit.trainer.loss.inputs import PolicyTerms


def clipped(ratio: Tensor, advantage: Tensor, *, clip_low: float, clip_high: float) -> PolicyTerms:
    """Return -min(r A, clip(r, 1 - ε_low, 1 + ε_high) A).

    The clip only ever takes gain away: from r > 1 + ε_high where A > 0, and from r < 1 - ε_low
    where A < 0. There the gradient is 0; everywhere else it is that of -r A.
    """
    inside = ratio.clamp(1 - clip_low, 1 + clip_high)
    value = ratio.detach()
    return PolicyTerms(
        loss=-torch.minimum(ratio * advantage, inside * advantage),
        ratio=value,
        stats={
            "clipped_high": (advantage > 0) & (value > 1 + clip_high),
            "clipped_low": (advantage < 0) & (value < 1 - clip_low),
        },
    )
