"""Chains: runs of states with one way in and one way out, which a large graph draws as one node."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.visible_part import READABLE

FEWEST = 3
"""States of a chain that is worth folding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StateChain:
    """States that follow each other, with no other way between, into or out of them."""

    nodes: tuple[Node, ...]
    """In their order."""
    edges: tuple[Edge, ...]
    """The transitions between them, in their order; one fewer than states."""

    @property
    def first(self) -> int:
        """The id of its first state, by which it is known."""
        return self.nodes[0].state_id

    @property
    def last(self) -> int:
        """The id of its last state."""
        return self.nodes[-1].state_id


def chains_of(graph: TaskGraph, kept: Collection[int] = ()) -> list[StateChain]:
    """Return the longest chains of a graph; none of a graph that can be read as it is.

    The start, the goal and states with a transition to themselves are in no chain.

    Args:
        graph: The part of the task's graph that is shown.
        kept: States that shall be drawn themselves.
    """
    if len(graph.nodes) <= READABLE:
        return []
    ways_in = Counter(edge.target for edge in graph.edges)
    ways_out = Counter(edge.source for edge in graph.edges)
    loops = {edge.source for edge in graph.edges if edge.source == edge.target}
    apart = {graph.nodes[0].state_id, graph.goal, *loops, *kept}
    inner = {
        node.state_id: node
        for node in graph.nodes
        if ways_in[node.state_id] == ways_out[node.state_id] == 1 and node.state_id not in apart
    }
    onward = {edge.source: edge for edge in graph.edges if edge.source in inner}
    before = {edge.target: edge.source for edge in graph.edges if edge.target in inner}
    found: list[StateChain] = []
    for state, node in inner.items():
        if before[state] in inner:
            continue
        nodes, edges = [node], list[Edge]()
        while (edge := onward[nodes[-1].state_id]).target in inner:
            edges.append(edge)
            nodes.append(inner[edge.target])
        if len(nodes) >= FEWEST:
            found.append(StateChain(nodes=tuple(nodes), edges=tuple(edges)))
    return found


def folded(graph: TaskGraph, chains: Sequence[StateChain]) -> TaskGraph:
    """Return the graph in which the first state of each chain stands for all of them.

    The transitions within chains are left out, the others keep their order. Those that leave a
    chain start at its first state.
    """
    stands_for = {node.state_id: chain.first for chain in chains for node in chain.nodes}
    return TaskGraph(
        nodes=tuple(
            node
            for node in graph.nodes
            if stands_for.get(node.state_id, node.state_id) == node.state_id
        ),
        edges=tuple(
            replace(edge, source=stands_for.get(edge.source, edge.source))
            for edge in outside(graph, chains)
        ),
    )


def outside(graph: TaskGraph, chains: Sequence[StateChain]) -> list[Edge]:
    """Return the transitions that are not within a chain."""
    inside = {edge.ends for chain in chains for edge in chain.edges}
    return [edge for edge in graph.edges if edge.ends not in inside]
