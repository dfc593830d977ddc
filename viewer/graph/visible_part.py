"""Which part of a graph to show: whole graphs of many states are unreadable, however drawn."""

from collections.abc import Iterable

import igraph

from graphcredit.viewer.graph.layout import drawn
from graphcredit.viewer.graph.task_graph import TaskGraph

READABLE = 40
"""States beyond which a graph is at first shown in part."""

MOST = 2000
"""States that are drawn at most."""


def best_path(graph: TaskGraph) -> list[int]:
    """Return the states of the cheapest way from the start to the goal.

    Where nobody won, it is the way that was taken most often, as far as it leads on.
    """
    goal = graph.goal
    if goal is None:
        return _beaten_path(graph)
    states = [node.state_id for node in graph.nodes]
    # Start and goal may be apart where only earlier iterations won; igraph warns, and gives [].
    whole = drawn(graph)
    if whole.distances(source=[0], target=[states.index(goal)], mode="out")[0][0] == float("inf"):
        return _beaten_path(graph)
    costs = [edge.cost for edge in graph.edges]
    path = whole.get_shortest_path(0, states.index(goal), weights=costs, mode="out")
    return [states[index] for index in path]


def around(graph: TaskGraph, centres: Iterable[int], num_hops: int) -> frozenset[int]:
    """Return the states within a number of steps of some states, in either direction."""
    states = [node.state_id for node in graph.nodes]
    known = {state: index for index, state in enumerate(states)}
    vertices = [known[state] for state in dict.fromkeys(centres) if state in known]
    whole: igraph.Graph = drawn(graph)
    balls = whole.neighborhood(vertices, order=num_hops, mode="all")
    return frozenset(states[index] for ball in balls for index in ball)


def most_visited(graph: TaskGraph, states: frozenset[int]) -> frozenset[int]:
    """Return at most `MOST` of some states: start, goal, and those that were visited most."""
    ends = {graph.nodes[0].state_id, graph.goal}
    ranked = sorted(
        (node for node in graph.nodes if node.state_id in states),
        key=lambda node: (node.state_id not in ends, -node.visits, node.state_id),
    )
    return frozenset(node.state_id for node in ranked[:MOST])


def _beaten_path(graph: TaskGraph) -> list[int]:
    path = [graph.nodes[0].state_id]
    while True:
        onward = [
            edge for edge in graph.edges if edge.source == path[-1] and edge.target not in path
        ]
        if not onward:
            return path
        path.append(max(onward, key=lambda edge: edge.visits).target)
