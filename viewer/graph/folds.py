"""Parts of a large graph that are drawn as one node until they are opened: chains and rooms.

A *chain* is a run of states with one way in and one way out. A *room* is what lies behind one
state: states that are entered from there, and left to there or not at all.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from graphcredit.viewer.graph.rooms import behind_one_state
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.visible_part import READABLE

FEWEST = 3
"""States of a fold that is worth it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fold:
    """States that one node stands for."""

    kind: Literal["chain", "room"]
    nodes: tuple[Node, ...]
    """Of a chain in their order, of a room by their number of steps from its door."""
    steps: tuple[int, ...]
    """The number of steps of each from the first one of a chain, and from the door of a room."""
    edges: tuple[Edge, ...]
    """The transitions between them; of a chain in their order."""

    @property
    def first(self) -> int:
        """The id of its first state, by which it is known."""
        return self.nodes[0].state_id

    @property
    def last(self) -> int:
        """The id of its last state."""
        return self.nodes[-1].state_id


def folds_of(graph: TaskGraph, kept: Collection[int] = ()) -> list[Fold]:
    """Return the rooms of a graph and its longest chains; none if it can be read as it is.

    The start and the goal are in none, states with a transition to themselves in no chain. No state
    is in two. A room has at most as many states as can be read.

    Args:
        graph: The part of the task's graph that is shown.
        kept: States that shall be drawn themselves.
    """
    if len(graph.nodes) <= READABLE:
        return []
    apart = {graph.nodes[0].state_id, graph.goal, *kept}
    rooms = [
        _room(graph, steps)
        for steps in behind_one_state(graph, apart, most=READABLE)
        if len(steps) >= FEWEST
    ]
    inside = (node.state_id for room in rooms for node in room.nodes)
    return [*rooms, *_chains(graph, {*apart, *inside})]


def _room(graph: TaskGraph, steps: Mapping[int, int]) -> Fold:
    """Return a room, given the steps from its door to each of its states."""
    nodes = [node for node in graph.nodes if node.state_id in steps]
    nodes.sort(key=lambda node: (steps[node.state_id], node.state_id))
    return Fold(
        kind="room",
        nodes=tuple(nodes),
        steps=tuple(steps[node.state_id] for node in nodes),
        edges=tuple(edge for edge in graph.edges if {*edge.ends} <= steps.keys()),
    )


def _chains(graph: TaskGraph, apart: Collection[int | None]) -> list[Fold]:
    ways_in = Counter(edge.target for edge in graph.edges)
    ways_out = Counter(edge.source for edge in graph.edges)
    loops = {edge.source for edge in graph.edges if edge.source == edge.target}
    inner = {
        node.state_id: node
        for node in graph.nodes
        if ways_in[node.state_id] == ways_out[node.state_id] == 1
        and node.state_id not in loops
        and node.state_id not in apart
    }
    onward = {edge.source: edge for edge in graph.edges if edge.source in inner}
    before = {edge.target: edge.source for edge in graph.edges if edge.target in inner}
    found: list[Fold] = []
    for state, node in inner.items():
        if before[state] in inner:
            continue
        nodes, edges = [node], list[Edge]()
        while (edge := onward[nodes[-1].state_id]).target in inner:
            edges.append(edge)
            nodes.append(inner[edge.target])
        if len(nodes) >= FEWEST:
            steps = tuple(range(len(nodes)))
            chain = Fold(kind="chain", nodes=tuple(nodes), steps=steps, edges=tuple(edges))
            found.append(chain)
    return found


def folded(graph: TaskGraph, folds: Sequence[Fold]) -> TaskGraph:
    """Return the graph in which the first state of each fold stands for all of them.

    Its transitions are those that are drawn outside, in their order; those into a fold and out of
    it end at its first state.
    """
    stands_for = {node.state_id: fold.first for fold in folds for node in fold.nodes}

    def end(state: int) -> int:
        return stands_for.get(state, state)

    return TaskGraph(
        nodes=tuple(node for node in graph.nodes if end(node.state_id) == node.state_id),
        edges=tuple(
            replace(edge, source=end(edge.source), target=end(edge.target))
            for edge in outside(graph, folds)
        ),
    )


def outside(graph: TaskGraph, folds: Sequence[Fold]) -> list[Edge]:
    """Return the transitions that are drawn while all folds are closed.

    Of several between a fold and one state, in one direction, that is the most visited one.
    """
    hidden = {edge.ends for fold in folds for edge in (*fold.edges, *ways_inside(graph, fold))}
    return [edge for edge in graph.edges if edge.ends not in hidden]


def ways_inside(graph: TaskGraph, fold: Fold) -> list[Edge]:
    """Return the transitions into a fold and out of it that are drawn only while it is open."""
    within = {node.state_id for node in fold.nodes}
    ways = [edge for edge in graph.edges if (edge.source in within) != (edge.target in within)]
    ways.sort(key=lambda edge: -edge.visits)
    into: dict[int, Edge] = {}
    out: dict[int, Edge] = {}
    for edge in ways:
        if edge.target in within:
            into.setdefault(edge.source, edge)
        else:
            out.setdefault(edge.target, edge)
    drawn = {edge.ends for edge in (*into.values(), *out.values())}
    return [edge for edge in ways if edge.ends not in drawn]
