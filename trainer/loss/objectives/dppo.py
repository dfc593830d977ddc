"""DPPO: a token is let go when its probability has moved far, not when its ratio has."""

from dataclasses import dataclass

from graphcredit.store.options import Positive
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs


@dataclass(frozen=True, kw_only=True, slots=True)
class Dppo:
    """The surrogate, masked by the distance of two distributions: this token, or any other.

        r = exp(logprob - old)
        D = |exp(logprob) - exp(old)|        total variation of the two
        M = 0 where D > δ and (A > 0 and r > 1, or A < 0 and r < 1), else 1
        loss = -M r A

    A ratio says little of a rare token, which may double without harm, and too little of a likely
    one, which PPO lets fall from 0.99 to 0.80. M has no gradient. It drops only moves that would go
    on; the way back stays open. log r is cut to ±20; r has no other bound. The paper takes ratios
    to the sampler: that is `--correction bypass`.
    Source: arXiv 2602.04879, the mask with binary total variation.
    """

    limit: Positive = 0.2
    """δ, in probability."""

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token, and where it was masked."""
        ratio, advantage = tokens.log_ratio().exp(), tokens.advantage
        moved = tokens.logprob.detach().exp() - tokens.old.exp()
        is_high = (advantage > 0) & (moved > self.limit)
        is_low = (advantage < 0) & (moved < -self.limit)
        return PolicyTerms(
            loss=(-ratio * advantage).masked_fill(is_high | is_low, 0.0),
            ratio=ratio.detach(),
            stats={"clipped_high": is_high, "clipped_low": is_low},
        )
