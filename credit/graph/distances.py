"""The state graphs of many groups as one graph, and every distance to a goal in one call.

The groups are disjoint parts of one graph. So a single search backwards from all goals finds the
distance of every node of every group.
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

_ROUNDS = 1000
"""Rounds of a search; what is farther away is found one node at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StateGraph:
    """Distinct transitions between nodes, and how far each node is from its group's goal."""

    source: Ints
    """[num_transitions] node a transition leaves."""
    target: Ints
    """[num_transitions] node it enters."""
    cost: Floats
    """[num_transitions] the least observed."""
    count: Ints
    """[num_transitions] the steps that took it."""
    reward: Floats
    """[num_transitions] the mean of their rewards."""
    ends: Floats
    """[num_transitions] the share of them that ended their trajectory."""
    transition_of_step: Ints
    """[num_steps] the transition each step took."""
    hop: Floats
    """[num_transitions] 1; infinite for pruned ones: self-loops, and those that only invalid steps
    took."""
    goal_distance: Floats
    """[num_nodes] d(s): cost of the cheapest observed path to the goal; inf without one."""
    goal_hops: Floats
    """[num_nodes] transitions on the shortest path that avoids pruned ones; inf without one."""


def build_graph(
    *,
    state_of_step: Ints,
    target_of_step: Ints,
    cost: Floats,
    reward: Floats,
    is_last: Bools,
    is_valid: Bools,
    num_nodes: int,
    goals: Ints,
) -> StateGraph:
    """Build the graph of all groups and find every distance.

    Args:
        state_of_step: [num_steps] node each step leaves.
        target_of_step: [num_steps] node it enters.
        cost: [num_steps] > 0.
        reward: [num_steps].
        is_last: [num_steps] whether the step ends its trajectory.
        is_valid: [num_steps] whether the action did something.
        num_nodes: Nodes of all groups together.
        goals: [num_goals] the goal nodes.
    """
    transition, source, target = factorise_pairs(state_of_step, target_of_step)
    least_cost = np.full(len(source), np.inf)
    np.minimum.at(least_cost, transition, cost)
    is_acted = np.zeros(len(source), bool)
    is_acted[transition[is_valid]] = True
    hop = np.where(is_acted & (source != target), 1.0, np.inf)
    find = DistanceFinder(source, target, num_nodes, goals)
    count = np.bincount(transition, minlength=len(source))
    return StateGraph(
        source=source,
        target=target,
        cost=least_cost,
        count=count,
        reward=np.bincount(transition, reward, len(source)) / count,
        ends=np.bincount(transition, is_last, len(source)) / count,
        transition_of_step=transition,
        hop=hop,
        goal_distance=find(least_cost),
        goal_hops=find(hop),
    )


class DistanceFinder:
    """Finds the distance of every node to the nearest goal, with different weights.

    The search goes backwards from all goals at once, in rounds: a round follows the edges into the
    nodes that came nearer in the round before. Most states need few rounds, each of some calls of
    numpy. Longer ways are finished node by node, the nearest first.

    Args:
        source: [num_edges] node each edge leaves.
        target: [num_edges] node it enters.
        num_nodes: Nodes of all groups together.
        goals: [num_goals] nodes to reach.
        goal_costs: [num_goals] what an end there costs; 0 if not given.
    """

    def __init__(
        self,
        source: Ints,
        target: Ints,
        num_nodes: int,
        goals: Ints,
        goal_costs: Floats | None = None,
    ) -> None:
        self._order = np.argsort(target, kind="stable")
        self._source = source[self._order]
        num_entering = np.bincount(target, minlength=num_nodes)
        self._first = np.concatenate([[0], np.cumsum(num_entering)])
        """[num_nodes + 1] where the edges into a node begin, in the order of their targets."""
        self._at_goals = np.full(num_nodes, np.inf)
        np.minimum.at(self._at_goals, goals, 0.0 if goal_costs is None else goal_costs)

    def __call__(self, weights: Floats) -> Floats:
        """Return [num_nodes] the least sum of weights, each from 0; an infinite one is no edge."""
        weights, distance = weights[self._order], self._at_goals.copy()
        nodes = np.flatnonzero(np.isfinite(distance))
        for _ in range(_ROUNDS):
            if not len(nodes):
                return distance
            edges, number = self._entering(nodes)
            length = np.repeat(distance[nodes], number) + weights[edges]
            nodes = self._source[edges]
            is_nearer = length < distance[nodes]
            nodes = nodes[is_nearer]
            np.minimum.at(distance, nodes, length[is_nearer])
            nodes = np.unique(nodes)
        return self._far(nodes, distance, weights)

    def _far(self, nodes: Ints, distance: Floats, weights: Floats) -> Floats:
        """Return the distances, if only the edges into some nodes can still make some less."""
        source, first, weight, least = (
            array.tolist() for array in (self._source, self._first, weights, distance)
        )
        queue = [(least[node], node) for node in nodes.tolist()]
        heapify(queue)
        while queue:
            at, node = heappop(queue)
            if at > least[node]:
                continue
            for edge in range(first[node], first[node + 1]):
                if at + weight[edge] < least[source[edge]]:
                    least[source[edge]] = at + weight[edge]
                    heappush(queue, (least[source[edge]], source[edge]))
        return np.array(least)

    def _entering(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the edges into some nodes, node by node, and how many each has."""
        first = self._first[nodes]
        number = self._first[nodes + 1] - first
        ends = np.cumsum(number)
        return np.repeat(first - ends + number, number) + np.arange(ends[-1]), number
