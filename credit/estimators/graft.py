"""GRAFT: the chance of success, as the group behaved, that a step gains, and the gains ahead."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.parts import episode_part
from graphcredit.credit.estimators.relative import Normalize, StatOver, relative
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs
from graphcredit.store.options import AtLeastOne, Discount, Share, Weight

_ROUNDING = 1e-9
"""A smaller step reward is what sums leave of 0: it has no sign."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Graft:
    """A step is worth the value that it gains if the group goes on as it did, and the gains ahead.

        V(u) = γ · Σ_v n(u, v) / n(u) · V(v)       V(goal) = 1; V = 0 where a failure ends
        δ(u, v) = γ V(v) - V(u)
        step reward = δ(s_t, s_{t+1}) + Σ_k (γλ)^k · mean of δ over the edges k hops ahead
        A_S = rel(step reward; edges of s_t)       sign(step reward) where s_t has one edge
        A = w_τ · rel(R(τ); group) + w_S · A_S

    s_t is `state_of_step`, s_{t+1} is `target_of_step`. n(u, v) counts the steps from u to v, n(u)
    those from u: the paper's Σ_a π(a|u) · P(v|u, a), with both estimated by counts, is
    n(u, v) / n(u). An edge is a pair of nodes, whatever the action; invalid steps count. The edges
    1 hop ahead leave s_{t+1}; where none is left, a hop adds 0. V is the solution of its equations:
    the paper's sweeps end when V changes by less than 1e-8, these when it changes no more.

    **An exception.** Elsewhere a group of one gives 0. Here a node with one edge, however often it
    was taken, has mean 0 and standard deviation |step reward|, as in the paper: its steps get 1 or
    -1, or the step reward itself with `normalize="none"`. They get 0 only where it is 0.

    **Left open by what is known of the paper**, most with an option: where a failure ends
    (`failure_ends`); how many hops ahead count (`hops`); whether an edge counts once in the
    statistics of its node (`edge_counts`); whether there is an episode part (`episode_weight`). An
    edge ahead counts once for each walk to it. An action is not part of an edge.

    **Degenerate cases.** V is 0 at a node from which no goal is reached, so a group without a
    success has no step signal. V is the mean of what follows, so over the *steps* from a node the
    mean of δ is 0: edges ahead add what comes of counting each edge once, not each step.

    Source: GRAFT paper.
    """

    gamma: Discount = 0.99
    """γ, discount of the value per step."""
    gae_lambda: Share = 0.95
    """λ, how much edges ahead count; the paper uses 0.95 on ALFWorld, 0.8 on WebShop and 0.6 on
    search."""
    hops: AtLeastOne = 200
    """How far ahead edges count at most; (γλ)^200 is below 1e-5."""
    failure_ends: Literal["apart", "shared"] = "shared"
    """A failure ends at its last state, where V is then 0 for all (shared), or in a sink of its own
    behind it (apart)."""
    edge_counts: Literal["edges", "steps"] = "edges"
    """An edge counts once in the mean and deviation of its node, or once for each step."""
    step_weight: Weight = 1.0
    """w_S, weight of the step part."""
    episode_weight: Weight = 1.0
    """w_τ, weight of the episode part."""
    normalize: Normalize = "std"
    """Divide by the standard deviation, or not."""
    stat_over: StatOver = "trajectories"
    """For the episode part: count each rollout once, or once per step."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the parts of the advantage, each [num_steps]."""
        edges = _Edges.of(batch, is_apart=self.failure_ends == "apart")
        worth = self._worth(edges, self.value(batch, edges))
        step = self._among_siblings(edges, worth)[edges.of_step]
        episode = episode_part(
            batch, batch.episode_return, normalize=self.normalize, stat_over=self.stat_over
        )
        return {
            "step_reward": worth[edges.of_step],
            "step_advantage": step,
            "episode_advantage": episode,
            "advantage": self.episode_weight * episode + self.step_weight * step,
        }

    def value(self, batch: StepBatch, edges: "_Edges") -> Floats:
        """Return V of every node, and 0 of the sink after the last. [num_nodes + 1]."""
        goes_on = ~edges.is_sink[edges.source]
        source, count = edges.source[goes_on], edges.count[goes_on]
        visits = np.bincount(source, count, edges.num_nodes)
        return goal_chance(
            source=source,
            target=edges.target[goes_on],
            chance=self.gamma * count / visits[source],
            num_nodes=edges.num_nodes,
            goals=batch.goal_of_group[batch.goal_of_group >= 0],
        )

    def _worth(self, edges: "_Edges", value: Floats) -> Floats:
        """Return the step reward of every edge. [num_edges]."""
        gain = self.gamma * value[edges.target] - value[edges.source]
        lies_ahead = np.zeros(edges.num_nodes)
        hops = means_of_walks(edges.source, edges.target, gain, edges.num_nodes)
        for number, mean in enumerate(islice(hops, self.hops), start=1):
            lies_ahead += (self.gamma * self.gae_lambda) ** number * mean
        worth = gain + lies_ahead[edges.target]
        return np.where(np.abs(worth) > _ROUNDING, worth, 0.0)

    def _among_siblings(self, edges: "_Edges", worth: Floats) -> Floats:
        """Return A_S of every edge. [num_edges]."""
        among = relative(
            worth,
            edges.source,
            edges.num_nodes,
            normalize=self.normalize,
            weights=edges.count if self.edge_counts == "steps" else None,
        )
        is_alone = np.bincount(edges.source, minlength=edges.num_nodes)[edges.source] == 1
        return np.where(is_alone, worth if self.normalize == "none" else np.sign(worth), among)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Edges:
    """Distinct transitions and how often each was taken; the last node is no group's: a sink."""

    source: Ints
    """[num_edges]."""
    target: Ints
    """[num_edges]."""
    count: Floats
    """[num_edges] steps that took it."""
    of_step: Ints
    """[num_steps] the edge of each step."""
    is_sink: Bools
    """[num_nodes + 1] whether a failure ends there."""

    @classmethod
    def of(cls, batch: StepBatch, *, is_apart: bool) -> "_Edges":
        target = batch.target_of_step.copy()
        failed_ends = (batch.trajectory_start[1:] - 1)[~batch.is_success]
        if is_apart:
            target[failed_ends] = batch.num_nodes
        of_step, source, target_of_edge = factorise_pairs(batch.state_of_step, target)
        is_sink = np.zeros(batch.num_nodes + 1, bool)
        is_sink[target[failed_ends]] = True
        return cls(
            source=source,
            target=target_of_edge,
            count=np.bincount(of_step, minlength=len(source)).astype(np.float64),
            of_step=of_step,
            is_sink=is_sink,
        )

    @property
    def num_nodes(self) -> int:
        """Nodes of all groups, and the sink."""
        return len(self.is_sink)


def means_of_walks(source: Ints, target: Ints, value: Floats, num_nodes: int) -> Iterator[Floats]:
    """Yield, for each k, the mean of the k-th edge's value over all walks of k edges.

    An edge lies k hops ahead where it is the last of a walk of k edges, and counts once for each.
    Numbers of walks grow without bound, so their logarithms are kept.

    Args:
        source: [num_edges] node each edge leaves.
        target: [num_edges] node it enters.
        value: [num_edges].
        num_nodes: Number of nodes.

    Yields:
        [num_nodes] 0 where no walk of k edges starts. The last k is the last with a walk.
    """
    count = np.bincount(source, minlength=num_nodes)
    mean = np.bincount(source, value, num_nodes) / np.maximum(count, 1)
    log_count = np.log(np.maximum(count, 1)) + np.where(count > 0, 0.0, -np.inf)
    while len(source):
        yield mean
        if not (goes_on := np.isfinite(log_count[target])).all():
            source, target = source[goes_on], target[goes_on]
        most = np.full(num_nodes, -np.inf)
        np.maximum.at(most, source, log_count[target])
        weight = np.exp(log_count[target] - most[source])
        total = np.maximum(np.bincount(source, weight, num_nodes), 1.0)
        mean = np.bincount(source, weight * mean[target], num_nodes) / total
        log_count = np.log(total) + most


def goal_chance(
    *, source: Ints, target: Ints, chance: Floats, num_nodes: int, goals: Ints
) -> Floats:
    """Return the discounted chance of every node to reach a goal; 0 without a path. [num_nodes].

        V(goal) = 1        V(u) = Σ over the edges (u, v) of p(u, v) · V(v)

    p holds the discount, so that the p of a node add up to 1 at most. Sweeps begin at 0, and no sum
    falls: they end where V no longer changes, so other groups beside a group change nothing.

    Args:
        source: [num_edges] node each edge leaves, never a goal.
        target: [num_edges] node it enters.
        chance: [num_edges] p, at least 0.
        num_nodes: Nodes of all groups together.
        goals: [num_goals] the goals.
    """
    value = np.zeros(num_nodes)
    while True:
        before = value
        value = np.bincount(source, chance * before[target], num_nodes).astype(np.float64)
        value[goals] = 1.0
        if np.array_equal(value, before):
            return value
