"""The layout of a graph: states in columns by their number of steps from the start, and its edges.

igraph's Sugiyama layout orders each column so that few edges cross, and gives each edge that passes
a column a place of its own there, so that it runs through no state.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

import igraph

from graphcredit.viewer.graph.task_graph import Edge, TaskGraph

Point: TypeAlias = tuple[float, float]

_ASPECT = 1.5
_WIDEST_COLUMN, _WIDEST_ROW = 420, 190
_PASSING = 0.35
"""Rows that an edge takes in a column that it passes; a state takes one."""
_APART = 8.0
"""Pixels from an edge to the middle between it and its reverse."""
_LEAN = 0.3
"""How far from the middle of the gap between columns an edge turns, as a share of the gap."""
_LETTER, _LINE = 8.2, 18.0
"""Size of a letter of a label, in pixels."""
_NAME = 26.0
"""Height of a name below a state, with its margin."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where the states and edges of a graph are drawn, in pixels."""

    places: Mapping[int, Point]
    """State to its centre."""
    controls: Sequence[Sequence[Point]]
    """[num_edges] control points of quadratic curves, one after the other, that meet in the middle
    between two of them; empty for a straight edge and a loop."""

    def moved(self, left: float, top: float) -> "Layout":
        """Return the same layout, moved: it begins at `left` and `top`."""
        points = [*self.places.values(), *(point for way in self.controls for point in way)]
        dx = left - min(x for x, _ in self.places.values())
        dy = top - min(y for _, y in points)
        return Layout(
            places={state: (x + dx, y + dy) for state, (x, y) in self.places.items()},
            controls=[[(x + dx, y + dy) for x, y in way] for way in self.controls],
        )


def drawn(graph: TaskGraph) -> igraph.Graph:
    """Return an igraph graph whose vertices and edges are in the order of `nodes` and `edges`."""
    position = {node.state_id: index for index, node in enumerate(graph.nodes)}
    pairs = [(position[edge.source], position[edge.target]) for edge in graph.edges]
    return igraph.Graph(len(graph.nodes), pairs, directed=True)


def layers_of(graph: TaskGraph) -> dict[int, int]:
    """Return {state_id: number of steps from the first state}; the goal stands after all others.

    States that cannot be reached from the first one are put in one more layer at the end.
    """
    size = len(graph.nodes)
    (steps,) = drawn(graph).distances(source=[0], mode="out")
    deepest = max((int(step) for step in steps if step < size), default=0)
    layers = {
        node.state_id: int(step) if step < size else deepest + 1
        for node, step in zip(graph.nodes, steps, strict=True)
    }
    goal = graph.goal
    if goal is None or len(layers) == 1:
        return layers
    last = max(layer for state, layer in layers.items() if state != goal)
    return layers | {goal: last + 1}


def layout_of(
    graph: TaskGraph, layers: Mapping[int, int], *, column: float, row: float, box: Point
) -> Layout:
    """Return the layout of a graph, about as wide as a page.

    Args:
        graph: What is drawn.
        layers: From `layers_of` the whole graph, if this is a part of it; layers without a drawn
            state take no room.
        column: Least distance of two columns.
        row: Least distance of two states of a column.
        box: Width and height of the largest state.
    """
    states, passing = _slots(graph, layers)
    width = max((x for x, _ in states.values()), default=0) + 1
    height = 2 * max((y for _, y in states.values()), default=0) + 1
    wide = min(max(column, height * row * _ASPECT / width), max(_WIDEST_COLUMN, column))
    high = min(max(row, width * column / _ASPECT / height), max(_WIDEST_ROW, row))
    places = {state: (x * wide, y * high) for state, (x, y) in states.items()}
    ends = {edge.ends for edge in graph.edges}
    controls = [
        _controls(
            [places[edge.source], *((x * wide, y * high) for x, y in slots), places[edge.target]],
            _APART if edge.ends[::-1] in ends else 0.0,
            box[0],
            high,
        )
        for edge, slots in zip(graph.edges, passing, strict=True)
    ]
    return Layout(places=places, controls=controls)


def _slots(
    graph: TaskGraph, layers: Mapping[int, int]
) -> tuple[dict[int, Point], list[list[Point]]]:
    """Return column and row of each state, and of each edge in the columns that it passes.

    An edge is a chain with a vertex in each of them: igraph's own routes are sometimes those of
    another edge. Its rows are crowded, so only their order is kept. Rows are centred on 0.
    """
    used = sorted({layers[node.state_id] for node in graph.nodes})
    columns = [used.index(layers[node.state_id]) for node in graph.nodes]
    num_states = len(columns)
    chains: list[list[int]] = []
    pairs: list[tuple[int, int]] = []
    for source, target in drawn(graph).get_edgelist():
        step = 1 if columns[source] < columns[target] else -1
        passed = range(columns[source] + step, columns[target], step)
        chains.append([*range(len(columns), len(columns) + len(passed))])
        columns += passed
        pairs += pairwise([source, *chains[-1], target])
    members: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for vertex, across in enumerate(_across(tuple(columns), tuple(pairs))):
        members[columns[vertex]].append((across, vertex))
    places: dict[int, Point] = {}
    for column, stack in members.items():
        sizes = [1 if vertex < num_states else _PASSING for _, vertex in sorted(stack)]
        at = -sum(sizes) / 2
        for (_, vertex), size in zip(sorted(stack), sizes, strict=True):
            places[vertex] = (column, at + size / 2)
            at += size
    states = {node.state_id: places[vertex] for vertex, node in enumerate(graph.nodes)}
    return states, [[places[vertex] for vertex in chain] for chain in chains]


@lru_cache(maxsize=16)
def _across(columns: tuple[int, ...], pairs: tuple[tuple[int, int], ...]) -> tuple[float, ...]:
    """Return the place of each vertex in its column; kept, since a click draws the graph again."""
    graph = igraph.Graph(len(columns), pairs, directed=True)
    sugiyama: Any = graph.layout_sugiyama(layers=columns)
    return tuple(across for across, _ in sugiyama.coords)


def _controls(points: list[Point], apart: float, box_width: float, row: float) -> list[Point]:
    """Return the control points of an edge, which leaves and enters states from the side.

    Args:
        points: Its start, where it passes columns, and its end.
        apart: Pixels from the middle between it and its reverse; it keeps to the upper side, and
            to the lower side on the way back.
        box_width: Width of the largest state.
        row: Distance of two states of a column.
    """
    (x0, y0), (x1, y1) = points[0], points[-1]
    if points[0] == points[-1]:
        return []
    if x0 == x1:
        # Past one state that is next to it, or around those between.
        beside = (1.0 if abs(y1 - y0) < 1.5 * row else 2.5) * (box_width / 2 + _APART)
        return [(x0 + (beside if y1 > y0 else -beside), (y0 + y1) / 2)]
    if not apart and len({y for _, y in points}) == 1:
        return []
    up = -apart if x1 > x0 else apart
    controls: list[Point] = []
    for (xa, ya), (xb, yb) in pairwise(points):
        lean = _LEAN * (abs(xb - xa) - box_width) * (1 if xb > xa else -1)
        middle = (xa + xb) / 2 - (up if (yb > ya) == (xb > xa) else -up)
        controls += [(middle - lean, ya + up), (middle + lean, yb + up)]
    return controls


def middle_of(start: Point, controls: Sequence[Point], end: Point) -> Point:
    """Return the middle of an edge, where its label is drawn unless it is moved."""
    count = len(controls)
    if count % 2:
        return _between(_between(start, controls[0]), _between(controls[0], end))
    return (
        _between(controls[count // 2 - 1], controls[count // 2]) if count else _between(start, end)
    )


def label_places(
    edges: Sequence[Edge],
    layout: Layout,
    labels: Sequence[str],
    *,
    sizes: Mapping[int, tuple[float, float]],
    order: Sequence[int],
    below: Mapping[int, str] = MappingProxyType({}),
) -> list[Point | None]:
    """Return the centre of each edge's label, which hides no state and no other label.

    Args:
        edges: Of the graph.
        layout: Of the graph.
        labels: [num_edges] what is written; empty for nothing.
        sizes: Width and height of each state.
        order: Edges by importance: the labels of the first ones find room.
        below: What is written below states.

    Returns:
        [num_edges]; None where there is no label or no room for it.
    """
    taken = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for state, (x, y) in layout.places.items()
        for w, h in [sizes[state]]
    ]
    for state, words in below.items():
        (x, y), half = layout.places[state], len(words) * _LETTER / 2
        top = y + sizes[state][1] / 2
        taken.append((x - half, top, x + half, top + _NAME))
    centres: list[Point | None] = [None] * len(edges)
    for index in order:
        if not labels[index]:
            continue
        half = len(labels[index]) * _LETTER / 2
        for x, y in _candidates(edges[index], layout, index, sizes):
            box = (x - half, y - _LINE / 2, x + half, y + _LINE / 2)
            if not any(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
                for other in taken
            ):
                taken.append(box)
                centres[index] = (x, y)
                break
    return centres


def _candidates(
    edge: Edge, layout: Layout, index: int, sizes: Mapping[int, tuple[float, float]]
) -> list[Point]:
    """Return places for a label, the best first: on the edge, then a little beside it."""
    start, end = layout.places[edge.source], layout.places[edge.target]
    if edge.source == edge.target:
        return [(start[0], start[1] - sizes[edge.source][1] / 2 - up) for up in (22, 34)]
    controls = layout.controls[index]
    joints = [start, *(_between(*pair) for pair in pairwise(controls)), end]
    turns = controls or [_between(start, end)]
    points = [
        _between(_between(left, turn, share), _between(turn, right, share), share)
        for (left, right), turn in zip(pairwise(joints), turns, strict=True)
        for share in (0.3, 0.5, 0.7, 1.0)
    ][:-1]
    # Before the middle, so that the labels of an edge and its reverse are apart.
    (x, y) = points[(len(points) - 1) * 2 // 5]
    points.sort(key=lambda point: abs(point[0] - x) + abs(point[1] - y))
    above = -13 if end[0] > start[0] else 13
    is_level = abs(end[1] - start[1]) < abs(end[0] - start[0]) / 4
    shifts = (above, -above, 3 * above, -3 * above) if is_level else (0, above, -above)
    return [(x, y + shift) for shift in shifts for x, y in points]


def _between(one: Point, other: Point, share: float = 0.5) -> Point:
    return one[0] + (other[0] - one[0]) * share, one[1] + (other[1] - one[1]) * share
