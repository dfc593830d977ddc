"""Supervised fine-tuning on the good steps of a log."""

from dataclasses import dataclass
from typing import Literal

from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs


@dataclass(frozen=True, kw_only=True, slots=True)
class Sft:
    """A good step's answer becomes likelier; other steps teach nothing.

        loss = -w · logprob
        w = max(A, 0)              (advantage)
        w = 1 where A > 0, else 0  (equal)

    A is `advantage`. With `equal` and an advantage of whole trajectories, such as grpo's, this is
    rejection sampling: the better ones of each group are imitated. Steps with A ≤ 0 are left out
    before, so that means are over those that are learnt from. The ratio to `old` is not used.
    Sources: RAFT, arXiv 2304.06767; weights as in AWR, arXiv 1910.00177, with the positive part in
    place of the exponential.
    """

    weight: Literal["advantage", "equal"] = "advantage"
    """w."""

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token."""
        good = tokens.advantage.clamp(min=0)
        weight = good if self.weight == "advantage" else (good > 0).to(good.dtype)
        return PolicyTerms(loss=-weight * tokens.logprob, ratio=tokens.log_ratio().exp().detach())
