"""Draw a part of a task's graph: places, colours, widths, words and marks, as Cytoscape's data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from graphcredit.store.log_text import named
from graphcredit.store.plural import counted
from graphcredit.viewer.graph.importance import forks
from graphcredit.viewer.graph.layout import (
    Layout,
    Point,
    label_places,
    layers_of,
    layout_of,
    middle_of,
)
from graphcredit.viewer.graph.scales import SEEN, Scales
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.state_names import StateName, state_names
from graphcredit.viewer.graph.task_graph import Edge, Ends, Node, TaskGraph, edge_key, node_key
from graphcredit.viewer.graph.visible_part import READABLE
from graphcredit.viewer.graph.words import (
    box_label,
    edge_label,
    edge_tip,
    legend_notes,
    node_tip,
    state_line,
)
from graphcredit.viewer.widgets.colours import ink_on, sequential

Element = Mapping[str, Any]

_BOX, _CIRCLE = (216, 66), (44, 44)
"""Width and height of a box, and of the largest circle, in pixels."""
_COLUMNS, _ROWS = {True: 290, False: 210}, {True: 112, False: 70}
"""Least distances of columns and of states in one, of boxes and of circles."""
_ROOM_FOR_ACTIONS = 110
"""Most transitions that have their actions as labels; of more, only the marks are written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """The drawing without the selection, so that a selection does not change it."""

    nodes: Sequence[Element]
    """States."""
    edges: Sequence[Element]
    """Transitions."""
    legend: Mapping[str, Any]
    names: Mapping[int, str]
    """Number and name of each state of the whole graph."""
    sights: Sequence[str]
    """Keys of the states that are in sight at first where the whole cannot be read: the start, and
    both ends of the transition with which most rollouts left the way of those that ended well."""

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {
            "nodes": self.nodes,
            "edges": self.edges,
            "legend": self.legend,
            "sights": self.sights,
        }


def draw_part(
    graph: TaskGraph,
    whole: TaskGraph,
    shading: Shading,
    *,
    title: str = "",
    steps: pa.Table | None = None,
) -> Drawing:
    """Return the drawing of a graph; with the steps of its task, its fork is in sight at first."""
    layers = layers_of(whole)
    are_boxes = len(graph.nodes) <= READABLE
    scales = Scales.of(whole, shading)
    sizes = _sizes(graph, are_boxes=are_boxes)
    box = _BOX if are_boxes else _CIRCLE
    column, row = _COLUMNS[are_boxes], _ROWS[are_boxes]
    layout = layout_of(graph, layers, column=column, row=row, box=box)
    has_room = len(graph.edges) <= _ROOM_FOR_ACTIONS
    labels = [edge_label(edge, shading, has_room=has_room) for edge in graph.edges]
    order = _by_importance(graph, shading)
    names = state_names(whole)
    lines = {node.state_id: state_line(node, names[node.state_id]) for node in whole.nodes}
    below = (
        {}
        if are_boxes
        else {node.state_id: _below(node, names[node.state_id]) for node in graph.nodes}
    )
    at = label_places(graph.edges, layout, labels, sizes=sizes, order=order, below=below)
    labels = ["" if place is None else label for place, label in zip(at, labels, strict=True)]
    notes = legend_notes(graph, shading, are_boxes=are_boxes)
    if left_out := labels.count(""):
        notes.append(f"{counted(left_out, 'action')} without room: point at the edge")
    start = min(layers, key=layers.__getitem__)
    return Drawing(
        nodes=[
            {
                "data": _state(node, names[node.state_id], shading, scales, is_box=are_boxes)
                | {"kind": _kind(node, start)}
                | dict(zip(("width", "height"), sizes[node.state_id], strict=True)),
                "position": dict(zip("xy", layout.places[node.state_id], strict=True)),
            }
            for node in graph.nodes
        ],
        edges=[
            {
                "data": _transition(edge, shading, scales)
                | {"label": labels[index]}
                | _route(layout, index, edge, at[index], sizes[edge.source][1])
            }
            for index, edge in enumerate(graph.edges)
        ],
        legend={"title": named(title)} | _legend(shading, scales, notes),
        sights=_sights(graph, shading, start, () if steps is None else forks(steps)),
        names=lines,
    )


def _sights(graph: TaskGraph, shading: Shading, start: int, parting: Iterable[Ends]) -> list[str]:
    """Return the start and the greatest fork: of a laid trajectory, its own."""
    drawn = {edge.ends for edge in graph.edges}
    drawn = drawn & {*shading.own} or drawn
    fork = next((ends for ends in parting if ends in drawn), (start,))
    return [node_key(state) for state in dict.fromkeys((start, *fork))]


def _sizes(graph: TaskGraph, *, are_boxes: bool) -> dict[int, tuple[int, int]]:
    """Return the width and height of each state; circles grow with the visits."""
    most = max((node.visits for node in graph.nodes), default=1)
    sides = {n.state_id: round(18 + 26 * (n.visits / max(most, 1)) ** 0.5) for n in graph.nodes}
    return {state: _BOX if are_boxes else (side, side) for state, side in sides.items()}


def _by_importance(graph: TaskGraph, shading: Shading) -> list[int]:
    """Return the edges, those of the laid trajectory first, then by the size of their value."""

    def rank(index: int) -> tuple[bool, float]:
        edge = graph.edges[index]
        return edge.ends not in shading.own, -abs(shading.drawn_value(edge) or 0.0)

    return sorted(range(len(graph.edges)), key=rank)


def _state(
    node: Node, name: StateName, shading: Shading, scales: Scales, *, is_box: bool
) -> dict[str, Any]:
    """Return the data of a state."""
    depth = scales.shade(node)
    fill = {} if depth is None else {"colour": sequential(depth), "ink": ink_on(depth)}
    return {
        "id": node_key(node.state_id),
        "label": box_label(node, name) if is_box else _below(node, name),
        "tip": node_tip(node, name, shading),
        **({"box": True} if is_box else {}),
        **fill,
    }


def _below(node: Node, name: StateName) -> str:
    """Return what is written below a circle."""
    return state_line(node, replace(name, told=""))


def _kind(node: Node, start: int) -> str:
    if node.is_goal:
        return "goal"
    if node.state_id == start:
        return "start"
    return "dead end" if node.goal_distance is None else "state"


def _transition(edge: Edge, shading: Shading, scales: Scales) -> dict[str, Any]:
    value = shading.drawn_value(edge) or 0.0
    flags = {"pruned": edge.is_pruned, "way": bool(edge.between), "blamed": value < 0}
    return {
        "id": edge_key(edge.ends),
        "source": node_key(edge.source),
        "target": node_key(edge.target),
        "tip": edge_tip(edge, shading),
        "colour": scales.credit.colour(value),
        "width": round(1.5 + 6 * (edge.visits / scales.most) ** 0.5, 1),
    } | {name: True for name, is_set in flags.items() if is_set}


def _route(layout: Layout, index: int, edge: Edge, at: Point | None, height: int) -> dict[str, Any]:
    """Return the control points of an edge as Cytoscape has them, and the shift of its label.

    A control point has a share of the way between the centres, and a distance from it, to the right
    of the direction of travel.
    """
    (x0, y0), (x1, y1) = layout.places[edge.source], layout.places[edge.target]
    controls = layout.controls[index]
    dx, dy = x1 - x0, y1 - y0
    square = dx * dx + dy * dy or 1.0
    middle = middle_of((x0, y0), controls, (x1, y1))
    if edge.source == edge.target:
        middle = (x0, y0 - height / 2 - 22)
    shift = (0.0, 0.0) if at is None else (at[0] - middle[0], at[1] - middle[1])
    route: dict[str, Any] = {"dx": round(shift[0]), "dy": round(shift[1])}
    if controls:
        away = [(x - x0, y - y0) for x, y in controls]
        shares = (round((x * dx + y * dy) / square, 3) for x, y in away)
        bends = (round((y * dx - x * dy) / square**0.5, 1) for x, y in away)
        route |= {"shares": " ".join(map(str, shares)), "bends": " ".join(map(str, bends))}
    return route


def _legend(shading: Shading, scales: Scales, notes: Sequence[str]) -> dict[str, Any]:
    """Return what colours and marks mean."""
    return {
        "advantage": shading.advantage,
        "edge_ends": scales.credit.ends(),
        "edge_scale": scales.credit.bar(),
        "state": SEEN,
        "state_scale": [sequential(step / 4) for step in range(5)],
        "state_ends": scales.state_ends(),
        "marks": list(notes),
    }
