"""RLOO by turns: what follows a turn, less what the other trajectories earn from there on."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.steps.arrays import Floats, discounted_returns, factorise_pairs
from graphcredit.store.options import Discount


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRloo:
    """A turn is worth the rewards from it on, less the mean of those of the other rollouts.

        G_t(τ) = Σ_{k≥t} γ^{k-t} r_k, and 0 if τ ended before turn t
        A      = G_t(τ) - mean of G_t over the other rollouts of the group

    r is `reward`. The baseline of a turn has a term for *every* other rollout, whether it got so
    far or not, and none of its own. So it depends on nothing that its own policy chose, and with
    γ = 1 the expected gradient is that of the return, also where the policy decides when to stop:
    MT-GRPO's baseline has a term for each turn that the rollout itself takes. Ended ones count
    as 0, and not as absent, so that the baseline of a late turn is no mean of one or two. Alone in
    its group: 0. Source: verl RFC 7244 (the bias); RLOO by turns.
    """

    gamma: Discount = 1.0
    """γ. Below 1 a reward counts less for the turns long before it."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the advantage, [num_steps]."""
        followed = discounted_returns(batch.reward, batch.trajectory_start, self.gamma)
        index = np.arange(batch.num_steps) - batch.trajectory_start[batch.trajectory_of_step]
        turn, groups, _ = factorise_pairs(batch.group_of_step, index)
        num_turns = len(groups)
        # Less the first of each turn, so that large equal parts cost no precision.
        first = np.zeros(num_turns)
        first[turn[::-1]] = followed[::-1]
        offset = followed - first[turn]
        num_here = np.bincount(turn, minlength=num_turns)[turn]
        size = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
        num_others = size[batch.group_of_step] - 1
        of_others = np.bincount(turn, offset, num_turns)[turn] - offset
        of_ended = first[turn] * (num_others + 1 - num_here)
        advantage = offset + (of_ended - of_others) / np.maximum(num_others, 1)
        return {"advantage": np.where(num_others > 0, advantage, 0.0)}
