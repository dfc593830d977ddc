"""Analogy: the distance a step gains, where untried actions do what they did in alike states."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.relative import Normalize, relative
from graphcredit.credit.graph.distances import DistanceFinder
from graphcredit.credit.inputs.analogies.untried_actions import Analogies
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.errors import InputError
from graphcredit.store.options import Positive


@dataclass(frozen=True, kw_only=True, slots=True)
class Analogy:
    """A step is worth the share of its cost that it turned into distance to the goal.

        d(s)        = least of  c(s, a) + d(s')            over the steps a from s to s'
                                c(t, a) / alike + d(t')    over the untried actions a of s
                                C / u(s)                   in a group without a goal
        u(s)        = Σ (1 - alike)                        over the untried actions a of s
        step reward = max((d(s_t) - d(s_{t+1})) / c_t, -1)
        A           = rel(step reward; all steps of the group)

    An action is untried at s where it is admissible and no step of the group took it there. Of the
    states where the group did take it, t is the one most alike s (all of them, if several are), t'
    is where it led from there, and alike is how alike s and t are, between 0 and 1, as
    `inputs/analogies/` defines it. With that chance the action is supposed to do here what it did
    there, so it costs c / alike; otherwise it does something new.

    **Why.** Most of what a graph of few trajectories does not know is not unknown: to fetch a
    second object does not move the door. Published graph estimators judge a step among those from
    the same state, which is blind where all did the same, and by the graph as it was walked, in
    which every object picked up starts another copy of the world without a way out. Where nobody
    reached the goal, it lies behind what nobody tried: each state leads there at C over the number
    of new things that can be tried in it.

    **What it assumes**: that a list of admissible actions is that of its state. The input
    measures it group by group. Where the lists are missing, are one menu for most states, or change
    between visits of a state, nothing is untried: d is that of the walked graph, and the report, a
    warning of `compute` and the audit say in how many groups. Lists on some steps only are used.

    **Degenerate cases.** A step gains at most its cost, because it is an edge itself. It is taken
    to lose no more: where d(s_{t+1}) is infinite, nothing says how bad that is. From ∞ to ∞ is 0.
    Where nothing is imagined, a group without a goal has step reward 0. An invalid action tried
    nothing. Source: this project; docs/estimator-analogy.md has the measurements.
    """

    search_cost: Positive = 30.0
    """C: what it costs to find the goal from a state with one new thing to try."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""

    def distance(self, batch: StepBatch, analogies: Analogies) -> Floats:
        """Return d of every node. [num_nodes]."""
        goals = batch.goal_of_group[batch.goal_of_group >= 0]
        has_goal = batch.goal_of_group[batch.group_of_node] >= 0
        exits = np.flatnonzero(~has_goal & (analogies.novelty > 0))
        with np.errstate(over="ignore"):
            search = self.search_cost / analogies.novelty[exits]
        find = DistanceFinder(
            np.concatenate([batch.graph.source, analogies.source]),
            np.concatenate([batch.graph.target, analogies.target]),
            batch.num_nodes,
            np.concatenate([goals, exits]),
            np.concatenate([np.zeros(len(goals)), search]),
        )
        return find(np.concatenate([batch.graph.cost, analogies.cost]))

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps].

        Raises:
            InputError: The batch was made without analogies.
        """
        if batch.analogies is None:
            raise InputError(
                "analogy needs to know what untried actions would do: assemble the "
                "batch with analogies"
            )
        distance = self.distance(batch, batch.analogies)
        before, after = distance[batch.state_of_step], distance[batch.target_of_step]
        gain = np.subtract(before, after, out=np.zeros(batch.num_steps), where=np.isfinite(before))
        reward = np.clip(gain, -batch.cost, batch.cost) / batch.cost
        advantage = relative(
            reward, batch.group_of_step, batch.num_groups, normalize=self.normalize
        )
        return {"step_reward": reward, "step_advantage": advantage, "advantage": advantage}
