"""Where the states of a drawing stand, how large they are, and how its edges run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphcredit.viewer.graph.bends import Point
from graphcredit.viewer.graph.layout import layered_positions
from graphcredit.viewer.graph.routes import Route, routes
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import Node, TaskGraph
from graphcredit.viewer.graph.words import edge_label

_LAYER, _PLACE = 170, 70
_ASPECT = 1.5
_WIDEST_LAYER, _WIDEST_PLACE = 420, 190
_ROOM_FOR_ACTIONS = 110
_BOX = (144, 62)
_BOX_LAYER, _BOX_PLACE = 210, 112


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """How large states are drawn, in pixels."""

    are_boxes: bool
    """Whether they are boxes with words; circles grow with the visits."""
    most_visits: int
    """Of any state."""

    def of(self, node: Node) -> tuple[int, int]:
        """Return the width and height of a state."""
        if self.are_boxes:
            return _BOX
        side = round(18 + 26 * (node.visits / max(self.most_visits, 1)) ** 0.5)
        return side, side


def places_of(
    graph: TaskGraph, layers: Mapping[int, int], *, are_boxes: bool
) -> tuple[dict[int, Point], float]:
    """Return the centres of the states, and the distance of two columns, in pixels.

    The drawing is about as wide as the page.

    Args:
        graph: What is drawn.
        layers: From `layers_of` the whole graph.
        are_boxes: Whether states are boxes.
    """
    places = layered_positions(graph, layers)
    narrow, low = (_BOX_LAYER, _BOX_PLACE) if are_boxes else (_LAYER, _PLACE)
    width = max((x for x, _ in places.values()), default=0) + 1
    height = 2 * max((y for _, y in places.values()), default=0) + 1
    layer = min(max(narrow, height * low * _ASPECT / width), _WIDEST_LAYER)
    place = min(max(low, width * narrow / _ASPECT / height), _WIDEST_PLACE)
    placed = {
        # Every second layer stands a little lower, so that no edge runs straight through a state.
        key: (x * layer, y * place + 14 * (x % 2))
        for key, (x, y) in places.items()
    }
    return placed, layer


def places_within(steps: Sequence[int], at: Point, column: float, sizes: Sizes) -> list[Point]:
    """Return the centres of the states of an open fold: a column for each number of steps.

    Args:
        steps: Of each state; 0 is where the closed fold is.
        at: The centre of the closed fold.
        column: The distance of two columns.
        sizes: Of the states.
    """
    x, y = at
    place = _BOX_PLACE if sizes.are_boxes else _PLACE
    rows, number = Counter(steps), Counter[int]()
    found: list[Point] = []
    for step in steps:
        found.append((x + step * column, y + (number[step] - (rows[step] - 1) / 2) * place))
        number[step] += 1
    return found


def routed(
    graph: TaskGraph,
    labels: list[str],
    shading: Shading,
    places: Mapping[int, Point],
    size: Mapping[int, tuple[int, int]],
) -> list[tuple[str, Route]]:
    """Return the label and the route of each edge; the label is empty where it has no room.

    Args:
        graph: What is drawn, with closed folds.
        labels: From `labels_of` it.
        shading: The meaning of the colours.
        places: The centres of its states.
        size: Their widths and heights.
    """

    def importance(index: int) -> tuple[bool, float]:
        edge = graph.edges[index]
        return edge.ends not in shading.own, -abs(shading.drawn_value(edge) or 0.0)

    found = routes(
        [(places[edge.source], places[edge.target]) for edge in graph.edges],
        labels,
        boxes={places[node.state_id]: _half(size[node.state_id]) for node in graph.nodes},
        order=sorted(range(len(labels)), key=importance),
    )
    return [
        ("" if route.shift is None else label, route)
        for label, route in zip(labels, found, strict=True)
    ]


def _half(size: tuple[int, int]) -> Point:
    return size[0] / 2, size[1] / 2


def labels_of(graph: TaskGraph, shading: Shading) -> list[str]:
    """Return the labels of the edges; where there are many, only their marks."""
    has_room = len(graph.edges) <= _ROOM_FOR_ACTIONS
    return [edge_label(edge, shading, has_room=has_room) for edge in graph.edges]
