"""What matters of a graph: transitions worth a look, and the ways between, each drawn as one line.

A way through states where nothing is decided takes no room, however long it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import igraph
import pyarrow as pa

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.importance import important
from graphcredit.viewer.graph.layout import drawn
from graphcredit.viewer.graph.task_graph import Edge, Ends, TaskGraph
from graphcredit.viewer.graph.visible_part import READABLE


def readable_part(graph: TaskGraph, steps: pa.Table) -> TaskGraph:
    """Return a graph that can be read as a whole, else what matters of it."""
    if len(graph.nodes) <= READABLE:
        return graph
    return what_matters(graph, [], important(graph, steps))


def what_matters(graph: TaskGraph, kept: Iterable[int], wanted: Iterable[Edge]) -> TaskGraph:
    """Return start, goal, the states that are kept, transitions by importance, and ways between.

    Args:
        graph: The whole graph.
        kept: States that are drawn in any case.
        wanted: Transitions by importance. They are drawn as long as there is room.

    Returns:
        A graph in which an edge may be a way: its `between` are the states on it. With room left,
        the shortest ways are drawn state by state.
    """
    chosen = dict.fromkeys([graph.nodes[0].state_id, *kept])
    if graph.goal is not None:
        chosen[graph.goal] = None
    for edge in wanted:
        more = chosen | dict.fromkeys(edge.ends)
        chosen = more if len(more) <= READABLE else chosen
    whole = drawn(graph)
    while True:
        ways = _ways(graph, whole, chosen)
        shortest = min(ways, key=len, default=[])
        if not shortest or len(chosen) + len(shortest) - 2 > READABLE:
            break
        chosen |= dict.fromkeys(shortest)
    part = graph.part(frozenset(chosen))
    edges = {edge.ends: edge for edge in graph.edges}
    return replace(part, edges=(*part.edges, *(_as_edge(way, edges) for way in ways)))


def _ways(graph: TaskGraph, whole: igraph.Graph, chosen: Iterable[int]) -> list[list[int]]:
    """Return the ways between chosen states that pass states which are not chosen.

    They are pieces of the cheapest ways from the start to each, and from each to the goal.
    """
    states = [node.state_id for node in graph.nodes]
    edges = {edge.ends for edge in graph.edges}
    chosen = set(chosen)
    pieces: dict[Ends, list[int]] = {}
    for way in _cheapest(graph, whole, [states.index(state) for state in sorted(chosen)]):
        places = [place for place, vertex in enumerate(way) if states[vertex] in chosen]
        for left, right in pairwise(places):
            piece = [states[vertex] for vertex in way[left : right + 1]]
            ends = piece[0], piece[-1]
            if len(piece) > 2 and ends not in edges and ends[0] != ends[1]:
                pieces.setdefault(ends, piece)
    return list(pieces.values())


def _cheapest(graph: TaskGraph, whole: igraph.Graph, targets: list[int]) -> Iterator[list[int]]:
    """Yield vertices of the cheapest ways from the start to each target, and on to the goal."""
    costs = [edge.cost for edge in graph.edges]
    reached = set(whole.subcomponent(0, mode="out"))
    to = [target for target in targets if target in reached]
    yield from whole.get_shortest_paths(0, to=to, weights=costs, mode="out")
    goal = next((place for place, node in enumerate(graph.nodes) if node.is_goal), None)
    if goal is None:
        return
    leading = set(whole.subcomponent(goal, mode="in"))
    to = [target for target in targets if target in leading]
    for way in whole.get_shortest_paths(goal, to=to, weights=costs, mode="in"):
        yield way[::-1]


def _as_edge(way: Sequence[int], edges: Mapping[Ends, Edge]) -> Edge:
    """Return a way as one edge, with the mean advantage of the steps along it."""
    parts = [edges[pair] for pair in pairwise(way)]
    credited = [edge for edge in parts if edge.advantage is not None]
    visits = sum(edge.visits for edge in credited)
    total = sum((edge.advantage or 0.0) * edge.visits for edge in credited)
    return Edge(
        source=way[0],
        target=way[-1],
        actions=(counted(len(parts), "step"),),
        visits=min(edge.visits for edge in parts),
        cost=sum(edge.cost for edge in parts),
        advantage=total / visits if visits else None,
        is_pruned=False,
        between=tuple(way[1:-1]),
    )
