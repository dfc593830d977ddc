"""Choose a readable part of a graph: a whole graph of many states is unreadable."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from itertools import islice

import igraph

from graphcredit.viewer.graph.layout import drawn
from graphcredit.viewer.graph.task_graph import Ends, TaskGraph

READABLE = 30
"""Most states of a graph that is shown as a whole by default."""

MOST = 2000
"""Most states to draw."""

MOST_TRANSITIONS = 2500
"""Most transitions to draw, if not more have to be."""


def around(graph: TaskGraph, centres: Iterable[int], num_hops: int) -> frozenset[int]:
    """Return the states within a number of steps of some states, in either direction."""
    states = [node.state_id for node in graph.nodes]
    known = {state: index for index, state in enumerate(states)}
    vertices = [known[state] for state in dict.fromkeys(centres) if state in known]
    whole: igraph.Graph = drawn(graph)
    balls = whole.neighborhood(vertices, order=num_hops, mode="all")
    return frozenset(states[index] for ball in balls for index in ball)


def most_visited(graph: TaskGraph, states: frozenset[int]) -> frozenset[int]:
    """Return at most `MOST` of some states: start, goal, and the most visited ones."""
    ends = {graph.nodes[0].state_id, graph.goal}
    ranked = sorted(
        (node for node in graph.nodes if node.state_id in states),
        key=lambda node: (node.state_id not in ends, -node.visits, node.state_id),
    )
    return frozenset(node.state_id for node in ranked[:MOST])


def thinned(part: TaskGraph, layers: Mapping[int, int], kept: Container[Ends]) -> TaskGraph:
    """Return a graph with at most `MOST_TRANSITIONS`, if not more have to be kept.

    Kept are those wanted and the most visited way into each state from a layer before it, so that
    no state loses its place; the others are the most visited ones.
    """
    if len(part.edges) <= MOST_TRANSITIONS:
        return part
    by_visits = sorted(part.edges, key=lambda edge: (-edge.visits, edge.ends))
    ways_in = {
        edge.target: edge
        for edge in reversed(by_visits)
        if layers[edge.source] < layers[edge.target]
    }
    needed = [edge for edge in by_visits if edge.ends in kept or ways_in.get(edge.target) is edge]
    ranked = dict.fromkeys(edge.ends for edge in [*needed, *by_visits])
    ends = set(islice(ranked, max(MOST_TRANSITIONS, len(needed))))
    return replace(part, edges=tuple(edge for edge in part.edges if edge.ends in ends))
