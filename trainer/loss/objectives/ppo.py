"""PPO: the clipped surrogate, token by token."""

from dataclasses import dataclass, replace

import torch

from graphcredit.store.errors import OptionError
from graphcredit.store.options import Discount, Weight
from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs
from graphcredit.trainer.loss.objectives.clipping import clipped


@dataclass(frozen=True, kw_only=True, slots=True)
class Ppo:
    """A token's probability is moved along its advantage until it has moved enough.

        r = exp(logprob - old)
        loss = -min(r A, clip(r, 1 - ε_low, 1 + ε_high) A)
        where A < 0: no more than c |A|            (dual clip)

    A is `advantage`, the same for all tokens of a step. log r is cut to ±20. With r = 1, as in the
    first update on recomputed `old`, loss = -A. The clip leaves r > 1 alone where A < 0: a bad
    token that the policy has come to favour is pulled back with weight r, and one of them can
    outweigh a batch. The dual clip gives up on it from r > c: gradient 0.
    Sources: GiGPO paper, Eq. 9, which writes ρ for the whole action; r per token and dual clip as
    in its published code. Clip: arXiv 1707.06347, Eq. 7. Two ends: DAPO, arXiv 2503.14476. Dual
    clip: arXiv 1912.09729, Eq. 5.
    """

    clip_low: Discount = 0.2
    """ε_low."""
    clip_high: Weight = 0.2
    """ε_high; DAPO takes 0.28 to leave rare tokens more room."""
    dual_clip: Weight = 3.0
    """c, above 1; 0 leaves the dual clip out."""

    def __post_init__(self) -> None:
        if 0 < self.dual_clip <= 1:
            raise OptionError(
                f"ppo.dual_clip must be 0 (off) or above 1: got {self.dual_clip:g}, which would "
                "stop every token with a negative advantage where it is"
            )

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token, and where it was clipped."""
        advantage = tokens.advantage
        terms = clipped(
            tokens.log_ratio().exp(), advantage, clip_low=self.clip_low, clip_high=self.clip_high
        )
        limit = self.dual_clip if self.dual_clip else torch.inf
        is_capped = (advantage < 0) & (terms.ratio > limit)
        return replace(
            terms,
            loss=torch.where(is_capped, -self.dual_clip * advantage, terms.loss),
            stats={**terms.stats, "dual_clipped": is_capped},
        )
