"""What is still earned in the steps that remain, as a group's own steps say it.

    V_0(s) = 0        V_h(goal) = 0
    V_h(s) = (Σ (r + V_{h-1}(s')) + κ (w + u(s)) h / H + κ e) / (n(s) + κ)

The sum is over the n(s) steps of the group that left s, each with reward r to an s'. So V_h(s) is
what their own behaviour earns from there, as if κ more steps had left s for something unknown. That
earns e at its end, and w + u(s) on the way while all H steps of an episode remain. A state that no
step left earns u(s) h / H.
Rewards are in the units of `earnings.py`: where outcomes are binary, V is the chance of success.

All groups are swept at once, those with the longest episodes first, so that a group whose episodes
are over costs nothing.
"""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs, ranges, starts_of_runs


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What is still earned around each step, with the steps that remain of its episode."""

    before: Floats
    """[num_steps] V_h(s)."""
    by_others: Floats
    """[num_steps] V_h(s) without one step that does what the action does."""
    after: Floats
    """[num_steps] r + V_{h-1}(s')."""
    of_action: Floats
    """[num_steps] Q_h(s, a): the mean of r + V_{h-1}(s') over the group's steps with a in s."""
    of_node: Floats
    """[num_nodes] V_H(s), with all steps of an episode."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """What a step to something unknown earns."""

    new: Floats
    """[num_nodes] u(s)."""
    way: Floats
    """[num_groups] w."""
    end: Floats
    """[num_groups] e."""

    @classmethod
    def nothing(cls, batch: StepBatch) -> "Unknown":
        """Return an unknown that earns nothing."""
        of_group = np.zeros(batch.num_groups)
        return cls(new=np.zeros(batch.num_nodes), way=of_group, end=of_group)


def outlook(batch: StepBatch, earned: Earnings, *, unknown: Unknown, doubt: float) -> Outlook:
    """Return the outlook of every step. The longest episode of a group is the length of all.

    Args:
        batch: The steps. Steps of earlier iterations count where the graph has them.
        earned: Their rewards.
        unknown: What a step to something unknown earns.
        doubt: κ, above 0.
    """
    horizon = horizon_of_group(batch)
    value, sweep = np.zeros(batch.num_nodes), _Sweep.of(batch, earned, horizon, unknown, doubt)
    actions = _Actions.of(batch, earned)
    remaining = horizon[batch.group_of_step] - _time_of_step(batch)
    order = np.argsort(remaining, kind="stable")
    first = np.searchsorted(remaining[order], np.arange(horizon.max(initial=0) + 2))
    before, after, of_action = (np.empty(batch.num_steps) for _ in range(3))
    for left in range(1, len(first) - 1):
        acting = order[first[left] : first[left + 1]]
        after[acting] = earned.of_step[acting] + value[batch.target_of_step[acting]]
        of_action[acting] = actions.mean(acting, value)
        sweep.update(value, left)
        before[acting] = value[batch.state_of_step[acting]]
    left_state = np.bincount(batch.graph.source, batch.graph.count, batch.num_nodes)
    weight = left_state[batch.state_of_step] + doubt
    return Outlook(
        before=before,
        by_others=(before * weight - of_action) / (weight - 1.0),
        after=after,
        of_action=of_action,
        of_node=value,
    )


def value_of_nodes(batch: StepBatch, earned: Earnings, *, doubt: float) -> Floats:
    """Return `Outlook.of_node` alone, where the unknown earns nothing."""
    horizon, nothing = horizon_of_group(batch), Unknown.nothing(batch)
    value, sweep = np.zeros(batch.num_nodes), _Sweep.of(batch, earned, horizon, nothing, doubt)
    for left in range(1, int(horizon.max(initial=0)) + 1):
        sweep.update(value, left)
    return value


def horizon_of_group(batch: StepBatch) -> Ints:
    """Return [num_groups] H, the number of steps of the longest trajectory."""
    horizon = np.zeros(batch.num_groups, np.int64)
    np.maximum.at(horizon, batch.group_of_trajectory, batch.trajectory_length)
    return horizon


def _time_of_step(batch: StepBatch) -> Ints:
    return np.arange(batch.num_steps) - batch.trajectory_start[batch.trajectory_of_step]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sweep:
    """Transitions by the horizon of their group, the longest first, then by their source."""

    target: Ints
    """[num_transitions]."""
    count: Floats
    """[num_transitions] steps that took it."""
    earned: Floats
    """[num_sources] Σ r of the steps that left it, and κ e."""
    node: Ints
    """[num_sources] the nodes that steps left."""
    first: Ints
    """[num_sources + 1] where the transitions of each start."""
    weight: Floats
    """[num_sources] n(s) + κ."""
    unknown: Floats
    """[num_sources] κ (w + u(s)) / H."""
    num_nodes: Ints
    """[longest horizon + 1] how many of the nodes have at least that horizon."""
    leaf: Ints
    """[num_leaves] the nodes that no step left and that are no goal."""
    leaf_unknown: Floats
    """[num_leaves] u(s) / H."""

    @classmethod
    def of(
        cls, batch: StepBatch, earned: Earnings, horizon: Ints, unknown: Unknown, doubt: float
    ) -> "_Sweep":
        graph = batch.graph
        of_node = horizon[batch.group_of_node]
        order = np.lexsort((graph.source, -of_node[graph.source]))
        first = starts_of_runs(graph.source[order])
        node = graph.source[order][first[:-1]]
        count = graph.count[order].astype(np.float64)
        rewards = count * earned.of_transition[order]
        per_step = unknown.new / np.maximum(of_node, 1)
        group = batch.group_of_node[node]
        way = unknown.way[group] / np.maximum(of_node[node], 1)
        steps = np.add.reduceat(rewards, first[:-1]) if len(node) else np.zeros(0)
        is_leaf = np.ones(batch.num_nodes, bool)
        is_leaf[node] = False
        is_leaf[batch.goal_of_group[batch.goal_of_group >= 0]] = False
        leaf = np.flatnonzero(is_leaf & (unknown.new > 0))
        wanted = np.arange(horizon.max(initial=0) + 1)
        return cls(
            target=graph.target[order],
            count=count,
            earned=steps + doubt * unknown.end[group],
            node=node,
            first=first,
            weight=np.add.reduceat(count, first[:-1]) + doubt if len(node) else np.zeros(0),
            unknown=doubt * (per_step[node] + way),
            num_nodes=np.searchsorted(-of_node[node], -wanted, side="right"),
            leaf=leaf,
            leaf_unknown=per_step[leaf],
        )

    def update(self, value: Floats, left: int) -> None:
        """Turn V_{h-1} into V_h in place, where h = `left` steps remain."""
        num_nodes = self.num_nodes[left]
        node, first = self.node[:num_nodes], self.first[: num_nodes + 1]
        edges = slice(0, first[-1])
        flow = np.add.reduceat(self.count[edges] * value[self.target[edges]], first[:-1])
        flow += self.earned[:num_nodes] + self.unknown[:num_nodes] * left
        value[node] = flow / self.weight[:num_nodes]
        value[self.leaf] = self.leaf_unknown * left


@dataclass(frozen=True, kw_only=True, slots=True)
class _Actions:
    """Where the actions of each node led."""

    action: Ints
    """[num_steps] the action of each step at its node."""
    num_outcomes: Ints
    """[num_actions] distinct nodes that each led to."""
    target: Ints
    """[num_outcomes in all] which, for one action after the other."""
    share: Floats
    """[num_outcomes in all] how often, of all times that the action was taken there."""
    reward: Floats
    """[num_actions] the mean reward of each."""

    @classmethod
    def of(cls, batch: StepBatch, earned: Earnings) -> "_Actions":
        action, _, _ = factorise_pairs(batch.state_of_step, batch.action_of_step)
        outcome, of_action, target = factorise_pairs(action, batch.target_of_step)
        order = np.argsort(of_action, kind="stable")
        times = np.bincount(outcome) / np.bincount(action)[of_action]
        return cls(
            action=action,
            num_outcomes=np.bincount(of_action),
            target=target[order],
            share=times[order],
            reward=np.bincount(action, earned.of_step) / np.bincount(action),
        )

    def mean(self, steps: Ints, value: Floats) -> Floats:
        """Return the mean of what the actions of some steps earned and led to. [len(steps)]."""
        owner, place = ranges(self.num_outcomes, self.action[steps])
        worth = self.share[place] * value[self.target[place]]
        led_to = np.bincount(owner, worth, len(steps)).astype(np.float64)
        return self.reward[self.action[steps]] + led_to
