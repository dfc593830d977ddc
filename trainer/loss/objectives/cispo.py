"""CISPO: policy gradient whose importance weight is clipped, instead of the update."""

from dataclasses import dataclass

from graphcredit.store.options import Discount, Weight
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs


@dataclass(frozen=True, kw_only=True, slots=True)
class Cispo:
    """REINFORCE with a bounded importance weight: no token loses its gradient.

        r = exp(logprob - old)
        loss = -sg(clip(r, 1 - ε_low, 1 + ε_high)) · A · logprob        sg: without gradient

    PPO drops a rare token as soon as one update has made it likely. Here the token keeps a weight
    of at most 1 + ε_high. A is `advantage`. log r is cut to ±20. The value of the loss has no
    meaning by itself; only its gradient counts.
    Source: MiniMax-M1, arXiv 2506.13585, Eq. 4-5.
    """

    clip_low: Discount = 1.0
    """ε_low; 1 sets no lower bound, as in the paper."""
    clip_high: Weight = 4.0
    """ε_high; a weight is at most 1 + ε_high. The paper tunes it and gives no number."""

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token, and where its weight was clipped."""
        ratio = tokens.log_ratio().exp().detach()
        weight = ratio.clamp(1 - self.clip_low, 1 + self.clip_high)
        return PolicyTerms(
            loss=-weight * tokens.advantage * tokens.logprob,
            ratio=ratio,
            stats={
                "clipped_high": ratio > 1 + self.clip_high,
                "clipped_low": ratio < 1 - self.clip_low,
            },
        )
