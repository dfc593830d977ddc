"""What steps earn, in units that every group shares: 0 for its least return, 1 for its greatest.

    R' = (R - least) / (greatest - least)
    r' = r / (greatest - least), less least / (greatest - least) on the last step

So credit does not change if all returns of a group are shifted or multiplied: learning from one
group does not change either. Where all returns are equal, R' is 1 for a success and 0 otherwise.
"""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, sum_per_run
from graphcredit.store.schema import ROUNDING


@dataclass(frozen=True, kw_only=True, slots=True)
class Earnings:
    """Rewards in those units."""

    of_step: Floats
    """[num_steps] r'."""
    of_transition: Floats
    """[num_transitions] the mean of r', over the steps of earlier iterations too."""
    of_trajectory: Floats
    """[num_trajectories] R'."""

    @classmethod
    def of(cls, batch: StepBatch) -> "Earnings":
        """Return the earnings of a batch."""
        returns, group = batch.episode_return, batch.group_of_trajectory
        least, greatest = np.full(batch.num_groups, np.inf), np.full(batch.num_groups, -np.inf)
        np.minimum.at(least, group, returns)
        np.maximum.at(greatest, group, returns)
        # Rewards may cancel: what their sums leave of each other is then rounding alone.
        size = np.zeros(batch.num_groups)
        np.maximum.at(size, group, sum_per_run(np.abs(batch.reward), batch.trajectory_start))
        is_even = greatest - least <= ROUNDING * size
        span = np.where(is_even, 1.0, greatest - least)
        is_last = np.zeros(batch.num_steps)
        is_last[batch.trajectory_start[1:] - 1] = 1.0
        won = np.zeros(batch.num_steps)
        won[batch.trajectory_start[1:] - 1] = batch.is_success
        graph, is_goal = batch.graph, np.zeros(batch.num_nodes, bool)
        is_goal[batch.goal_of_group[batch.goal_of_group >= 0]] = True

        def in_units(reward: Floats, ends: Floats, even: Floats, group: Ints) -> Floats:
            return np.where(is_even[group], even, (reward - least[group] * ends) / span[group])

        by_transition = batch.group_of_node[graph.source]
        return cls(
            of_step=in_units(batch.reward, is_last, won, batch.group_of_step),
            of_transition=in_units(
                graph.reward, graph.ends, is_goal[graph.target].astype(np.float64), by_transition
            ),
            of_trajectory=in_units(
                returns, np.ones(len(returns)), batch.is_success.astype(np.float64), group
            ),
        )

    def deviation(self, batch: StepBatch) -> Floats:
        """Return [num_groups] the standard deviation of R', with half a pair of 0 and 1 beside."""
        number = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups) + 1.0
        mean, square = (
            (np.bincount(batch.group_of_trajectory, values, batch.num_groups) + 0.5) / number
            for values in (self.of_trajectory, self.of_trajectory**2)
        )
        deviation: Floats = np.sqrt(square - mean**2)
        return deviation

    def of_failures(self, batch: StepBatch) -> tuple[Floats, Floats]:
        """Return the means of what failures earned before their last step, and by it. [num_groups].

        Both are 0 in a group without a failure, and in one that earned nothing.
        """
        group, num_groups = batch.group_of_trajectory, batch.num_groups
        counts = ~batch.is_success & ~self.earned_nothing(batch)[group]
        number = np.maximum(np.bincount(group, counts, num_groups), 1)
        by_last = self.of_step[batch.trajectory_start[1:] - 1]
        total, end = (
            np.bincount(group, values * counts, num_groups) / number
            for values in (self.of_trajectory, by_last)
        )
        return total - end, end

    def earned_nothing(self, batch: StepBatch) -> Bools:
        """Return [num_groups] whether R' is 0 for all trajectories."""
        most = np.zeros(batch.num_groups)
        np.maximum.at(most, batch.group_of_trajectory, self.of_trajectory)
        return most == 0
