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
    """[num_transitions] the mean of r' over its steps."""
    of_trajectory: Floats
    """[num_trajectories] R'."""
    least: Floats
    """[num_groups] the least return; 0 where all are equal."""
    span: Floats
    """[num_groups] the greatest less it; 1 where all are equal."""

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
        least = np.where(is_even, 0.0, least)
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
            least=least,
            span=span,
        )

    def mean(self, batch: StepBatch) -> Floats:
        """Return [num_groups] the mean of R'."""
        return self._mean_of(batch, self.of_trajectory)

    def variance(self, batch: StepBatch) -> Floats:
        """Return [num_groups] the variance of R', over all trajectories of a group."""
        variance: Floats = self._mean_of(batch, self.of_trajectory**2) - self.mean(batch) ** 2
        return np.maximum(variance, 0.0)

    def deviation(self, batch: StepBatch) -> Floats:
        """Return [num_groups] the standard deviation of R', with half a pair of 0 and 1 beside."""
        number = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
        mean, square = (
            (self._mean_of(batch, values) * number + 0.5) / (number + 1.0)
            for values in (self.of_trajectory, self.of_trajectory**2)
        )
        deviation: Floats = np.sqrt(square - mean**2)
        return deviation

    def before_step(self, batch: StepBatch) -> Floats:
        """Return [num_steps] what the trajectory of each step had earned before it."""
        earned = np.cumsum(self.of_step) - self.of_step
        return earned - np.repeat(earned[batch.trajectory_start[:-1]], batch.trajectory_length)

    def before(self, batch: StepBatch) -> Floats:
        """Return [num_nodes] the mean of that over the steps that left each node; 0 without one."""
        number = np.bincount(batch.state_of_step, minlength=batch.num_nodes)
        total = np.bincount(batch.state_of_step, self.before_step(batch), batch.num_nodes)
        return total / np.maximum(number, 1)

    def in_returns(self, values: Floats, group: Ints) -> Floats:
        """Return what is still earned, [n] in these units, in the log's own; group is [n]."""
        return self.least[group] + self.span[group] * values

    def _mean_of(self, batch: StepBatch, values: Floats) -> Floats:
        group, number = batch.group_of_trajectory, batch.num_groups
        return np.bincount(group, values, number) / np.maximum(
            np.bincount(group, minlength=number), 1
        )

    def earned_nothing(self, batch: StepBatch) -> Bools:
        """Return [num_groups] whether R' is 0 for all trajectories."""
        most = np.zeros(batch.num_groups)
        np.maximum.at(most, batch.group_of_trajectory, self.of_trajectory)
        return most == 0
