"""RLOO: a return against the mean of the others."""

from dataclasses import dataclass

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.relative import relative_to_others
from graphcredit.credit.steps.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Rloo:
    """Every step gets its rollout's return less the mean return of the other rollouts.

        A = R(τ) - mean of R over the other rollouts of the group

    R(τ) is `episode_return`. Alone in its group: 0. It is its own normalisation and has no options.
    Source: GiGPO paper, Eq. 10.
    """

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        of_trajectory = relative_to_others(
            batch.episode_return, batch.group_of_trajectory, batch.num_groups
        )
        advantage = of_trajectory[batch.trajectory_of_step]
        return {"episode_advantage": advantage, "advantage": advantage}
