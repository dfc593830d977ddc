"""GraphGPO: how close to the goal a step leads, by the cheapest observed path."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.ends import Worth, best_end
from graphcredit.credit.estimators.parts import episode_part, state_part
from graphcredit.credit.estimators.relative import Normalize, StatOver
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.options import PositiveDiscount, Weight


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphGpo:
    """A step is worth the goal's reward, discounted by its cost and the cheapest way on from there.

        step reward = R_goal · λ^{c_t + d(s_{t+1})}
        A = β_E · rel(R(τ); group) + β_G · rel(step reward; state group)

    d is `graph.goal_distance` over all observed transitions, c is `cost`, s_{t+1} is
    `target_of_step`. Where the goal cannot be reached, d = (largest finite d of the group) + 1. A
    group without a success has no goal: step reward and step advantage are 0. An edge taken three
    times counts three times in its state group. Step rewards smaller than rel's ε = 1e-6 carry no
    signal: with λ = 0.1 and unit costs it fades about 7 steps from the goal; a larger λ reaches
    further. Source: GraphGPO paper, Eq. 3-8.

    As published the step part reads no rewards. With `worth=returns` every end is a goal that is
    worth what was scored there (`ends.py`): the best of worth · λ^d takes the place of λ^d, and λ
    times the least of the group where no end that is worth something can be reached. Where returns
    are 0 and 1 that changes nothing. This option is ours.
    """

    distance_discount: PositiveDiscount = 0.1
    """λ; the paper uses 0.1 on ALFWorld, 0.2 on WebShop, 0.8 on Sokoban."""
    success_reward: Weight = 10.0
    """R_goal."""
    step_weight: Weight = 1.0
    """β_G, weight of the step part."""
    episode_weight: Weight = 1.0
    """β_E, weight of the episode part."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""
    stat_over: StatOver = "trajectories"
    """For the episode part: count each rollout once, or once per step."""
    worth: Worth = "success"
    """What an end is worth: 1 at the goal (success), or what was scored there (returns)."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        reward = self.success_reward * self._worth_of_steps(batch)
        step = state_part(batch, reward, normalize=self.normalize)
        episode = episode_part(
            batch, batch.episode_return, normalize=self.normalize, stat_over=self.stat_over
        )
        return {
            "step_reward": reward,
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": self.episode_weight * episode + self.step_weight * step,
        }

    def _worth_of_steps(self, batch: StepBatch) -> Floats:
        """Return λ^{c_t + d(s_{t+1})}, or what takes its place; 0 without a goal. [num_steps]."""
        discount, target = self.distance_discount, batch.target_of_step
        if self.worth == "returns":
            best = _bounded_worth(batch, best_end(batch, batch.graph.cost, discount), discount)
            return np.power(discount, batch.cost) * best[target]
        has_goal = batch.goal_of_group[batch.group_of_step] >= 0
        exponent = batch.cost + _bounded_distance(batch)[target]
        return np.where(has_goal, np.power(discount, exponent), 0.0)


def _bounded_worth(batch: StepBatch, best: Floats, discount: float) -> Floats:
    """Return best(s), with λ times the group's least in place of 0. [num_nodes]."""
    least = np.full(batch.num_groups, np.inf)
    np.minimum.at(least, batch.group_of_node[best > 0], best[best > 0])
    least = np.where(np.isfinite(least), discount * least, 0.0)
    return np.where(best > 0, best, least[batch.group_of_node])


def _bounded_distance(batch: StepBatch) -> Floats:
    """Return d with the group's largest finite d + 1 in place of infinity. [num_nodes]."""
    distance = batch.graph.goal_distance
    is_reachable = np.isfinite(distance)
    largest = np.zeros(batch.num_groups)
    np.maximum.at(largest, batch.group_of_node[is_reachable], distance[is_reachable])
    return np.where(is_reachable, distance, largest[batch.group_of_node] + 1)
