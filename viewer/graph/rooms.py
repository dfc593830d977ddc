"""What lies behind one state, its door: states that are entered from it, and left to it or not.

A state dominates another if each way from the start to the other leads through it (Lengauer and
Tarjan, 1979). What lies behind a door are whole subtrees of the tree of nearest dominators: those
that no transition leaves but to the door, or into each other.
"""

from collections import defaultdict
from collections.abc import Collection

import igraph

from graphcredit.viewer.graph.layout import drawn
from graphcredit.viewer.graph.task_graph import TaskGraph

_NOBODY = -1


def behind_one_state(
    graph: TaskGraph, apart: Collection[int | None], *, most: int
) -> list[dict[int, int]]:
    """Return the largest rooms, each as {state id: number of steps from its door}.

    What is no more than a run of states is no room.

    Args:
        graph: Its first state is the start.
        apart: States that are in no room.
        most: States of a room; what lies behind a door in several parts is several rooms.
    """
    whole = drawn(graph)
    states = [node.state_id for node in graph.nodes]
    door_of = [int(door) if door >= 0 else _NOBODY for door in whole.dominator(0, mode="out")]
    behind: dict[int, list[int]] = defaultdict(list)
    for vertex, door in enumerate(door_of):
        behind[door].append(vertex)
    rooms = [
        [vertex for top in tops for vertex in _subtree(top, behind)]
        for tops in _closed_parts(whole, door_of, [states.index(s) for s in apart if s in states])
    ]
    rooms = [room for room in rooms if len(room) <= most and not _is_run(whole, room)]
    rooms.sort(key=len, reverse=True)
    found: list[dict[int, int]] = []
    taken = set[int]()
    for room in rooms:
        # Of two rooms that share a state, one is in the other.
        if taken.isdisjoint(room):
            taken.update(room)
            found.append(_steps(whole, door_of[room[0]], room, states))
    return found


def _subtree(top: int, behind: dict[int, list[int]]) -> list[int]:
    found = [top]
    for vertex in found:
        found += behind.get(vertex, [])
    return found


def _closed_parts(whole: igraph.Graph, door_of: list[int], apart: list[int]) -> list[list[int]]:
    """Return tops of subtrees, together where one leads into another, that are left to the door."""
    is_open = set[int]()
    beside = igraph.Graph(len(door_of))
    pairs: list[tuple[int, int]] = []

    def opens(vertex: int) -> None:
        while vertex != _NOBODY:
            is_open.add(vertex)
            vertex = door_of[vertex]

    for vertex in apart:
        opens(vertex)
    for edge in whole.es:
        source, target = edge.tuple
        above = door_of[target]
        if door_of[source] == _NOBODY and source != 0:
            opens(target)  # from a state that cannot be reached from the start
            continue
        top = source
        while top not in (target, above, 0) and door_of[top] != target:
            if door_of[top] == above:
                pairs.append((top, target))
                break
            is_open.add(top)
            top = door_of[top]
    beside.add_edges(pairs)
    parts = beside.connected_components(mode="weak")
    return [part for part in parts if is_open.isdisjoint(part) and door_of[part[0]] != _NOBODY]


def _is_run(whole: igraph.Graph, room: list[int]) -> bool:
    return max(whole.degree(room, mode="in")) <= 1 and max(whole.degree(room, mode="out")) <= 1


def _steps(whole: igraph.Graph, door: int, room: list[int], states: list[int]) -> dict[int, int]:
    part = whole.induced_subgraph([door, *room])
    order = sorted([door, *room])
    (steps,) = part.distances(source=[order.index(door)], mode="out")
    return {
        states[vertex]: int(step)
        for vertex, step in zip(order, steps, strict=True)
        if vertex != door
    }
