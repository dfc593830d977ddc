"""GMPO: the geometric mean of a response's clipped ratios."""

from dataclasses import dataclass

import torch

from graphcredit.store.options import Positive
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs, bounded
from graphcredit.trainer.loss.segments import segment_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Gmpo:
    """Each token's ratio is clipped on its own, and a response weighs by their geometric mean.

        d = logprob - old;  where A > 0: c = min(d, ε_high);  where A < 0: c = max(d, -ε_low)
        s = exp(mean of c over the response)
        s_t = sg(s) · exp(c - sg(c))        sg: without gradient
        loss = -s_t A

    The clip is wide and on the logarithm: the geometric mean bears outliers, which PPO's sum does
    not, and unlike in GSPO a far token loses its own gradient only. s_t has the value of s; summed
    over a response with equal weights w, the tokens give the gradient of -w n s A, n their number.
    So aggregation `seq-mean` (w = 1 / S n) is the paper's objective. The response is that of one
    step. The mean is cut to ±20.
    Source: arXiv 2507.20673.
    """

    clip_low: Positive = 0.4
    """ε_low, on the logarithm of a ratio."""
    clip_high: Positive = 0.4
    """ε_high, likewise."""

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token, and where it was clipped."""
        gap, advantage = tokens.logprob - tokens.old, tokens.advantage
        is_high = (advantage > 0) & (gap > self.clip_high)
        is_low = (advantage < 0) & (gap < -self.clip_low)
        kept = torch.where(is_high, self.clip_high, torch.where(is_low, -self.clip_low, gap))
        fixed = kept.detach()
        mean = bounded(segment_mean(fixed, tokens.segment, tokens.num_segments)).exp()
        return PolicyTerms(
            loss=-mean * (kept - fixed).exp() * advantage,
            ratio=mean,
            stats={"clipped_high": is_high, "clipped_low": is_low},
        )
