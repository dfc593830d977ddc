"""GSPO: the clipped surrogate, response by response."""

from dataclasses import dataclass

from graphcredit.store.options import Discount, Weight
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs, bounded
from graphcredit.trainer.loss.objectives.clipping import clipped
from graphcredit.trainer.loss.segments import segment_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Gspo:
    """One ratio for a whole response, the geometric mean of its tokens', clipped as a whole.

        s = exp(mean over the response of (logprob - old))
        s_t = sg(s) · exp(logprob - sg(logprob))        sg: without gradient
        loss = -min(s_t A, clip(s_t, 1 - ε_low, 1 + ε_high) A)

    The sequence is **the response of one step**, its scored tokens: not the trajectory. s_t has the
    value of s, and the gradient of its own token; summed over a response with equal weights w they
    give the gradient of -w n min(s A, …), n its number of tokens. So aggregation `seq-mean`
    (w = 1 / S n) is the paper's objective; `token-mean` weighs a response by its length. The mean
    is cut to ±20. A response outside the clip gives no gradient at all; as a mean over tokens
    hardly moves, the range is a thousandth of PPO's. Correct a gap to the sampler by sequence, too.
    Source: arXiv 2507.18071, Eq. 5-7, in the form for tokens of Eq. 13.
    """

    clip_low: Discount = 3e-4
    """ε_low."""
    clip_high: Weight = 4e-4
    """ε_high."""

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token, and where its response was clipped."""
        fixed = tokens.logprob.detach()
        mean = segment_mean(fixed - tokens.old, tokens.segment, tokens.num_segments)
        ratio = bounded(mean).exp() * (tokens.logprob - fixed).exp()
        return clipped(ratio, tokens.advantage, clip_low=self.clip_low, clip_high=self.clip_high)
