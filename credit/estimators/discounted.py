"""Discounted: the rewards that follow a step, each worth the less the later it comes."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.steps.arrays import Floats, discounted_returns
from graphcredit.store.options import Discount

Baseline: TypeAlias = Literal["none", "group"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Discounted:
    """A step is worth the discounted rewards from it on, without group or graph.

        A = Σ_{k≥0} γ^k r_{t+k} - b        b = 0, or the mean of the same over the group's steps

    REINFORCE with a discount. It is the control for everything that a graph seems to give: what a
    graph says of a step is mostly how near the end of a won episode it is. Source: Williams 1992.
    """

    gamma: Discount = 0.9
    """γ."""
    baseline: Baseline = "none"
    """b: none, or the group's mean."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the advantage, [num_steps]."""
        worth = discounted_returns(batch.reward, batch.trajectory_start, self.gamma)
        if self.baseline == "group":
            group, num_groups = batch.group_of_step, batch.num_groups
            number = np.maximum(np.bincount(group, minlength=num_groups), 1)
            worth = worth - (np.bincount(group, worth, num_groups) / number)[group]
        return {"advantage": worth}
