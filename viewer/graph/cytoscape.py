"""Convert a part of a task's graph to Cytoscape's form: positions, colours, sizes and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.keys import edge_key, node_key
from graphcredit.viewer.graph.layout import layered_positions
from graphcredit.viewer.graph.names import distinctions
from graphcredit.viewer.graph.routes import Route, routes
from graphcredit.viewer.graph.shading import Shading, StateScale
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.visible_part import READABLE
from graphcredit.viewer.graph.words import (
    box_label,
    edge_label,
    edge_tip,
    legend_notes,
    node_tip,
    scale_ends,
    state_name,
)
from graphcredit.viewer.widgets.colours import colour_limit, diverging, sequential

_LAYER, _PLACE = 170, 70
_ASPECT = 1.5
_WIDEST_LAYER, _WIDEST_PLACE = 420, 190
_ROOM_FOR_ACTIONS = 110
_BOX = (144, 62)
_BOX_LAYER, _BOX_PLACE = 178, 112


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """The drawing without the selection, so that a selection does not change it."""

    nodes: Sequence[Mapping[str, Any]]
    edges: Sequence[Mapping[str, Any]]
    legend: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {"nodes": self.nodes, "edges": self.edges, "legend": self.legend}


def draw_part(graph: TaskGraph, layers: Mapping[int, int], shading: Shading) -> Drawing:
    """Return the drawing of a graph.

    Args:
        graph: The part of the task's graph that is shown.
        layers: From `layers_of` the whole graph.
        shading: The meaning of the colours.
    """
    is_small = len(graph.nodes) <= READABLE
    places = _places(graph, layers, is_small=is_small)
    values = [value for edge in graph.edges if (value := shading.drawn_value(edge)) is not None]
    limit = colour_limit(values)
    most = max((edge.visits for edge in graph.edges), default=1)
    most_visits = max((node.visits for node in graph.nodes), default=1)
    fill = _Fill(graph, shading.states)
    start = min(layers, key=layers.__getitem__)
    apart = distinctions(graph.nodes) if is_small else {}
    size = {
        node.state_id: _BOX
        if is_small
        else (round(18 + 26 * (node.visits / max(most_visits, 1)) ** 0.5),) * 2
        for node in graph.nodes
    }
    routed = _routed(graph, shading, places, size)
    return Drawing(
        nodes=[
            {
                "data": {
                    "id": node_key(node.state_id),
                    "label": box_label(node, apart) if is_small else state_name(node),
                    "tip": node_tip(node, shading),
                    "width": size[node.state_id][0],
                    "height": size[node.state_id][1],
                    "kind": _kind(node, is_start=node.state_id == start),
                    **({"box": True} if is_small else {}),
                    **fill.of(node),
                },
                "position": dict(zip("xy", places[node.state_id], strict=True)),
            }
            for node in graph.nodes
        ],
        edges=[
            _edge(edge, shading, limit, most, label, route)
            for edge, (label, route) in zip(graph.edges, routed, strict=True)
        ],
        legend={
            "advantage": shading.advantage,
            "edge_ends": scale_ends(values, limit),
            "edge_scale": [diverging(step, 4) for step in range(-4, 5)],
            "state": shading.states.title,
            "state_scale": [sequential(step / 4) for step in range(5)],
            "state_ends": fill.ends,
            "marks": [
                *(["in boxes: seen distance, visits"] if is_small else []),
                *legend_notes(shading),
                *_without_label(routed),
            ],
        },
    )


def _routed(
    graph: TaskGraph,
    shading: Shading,
    places: Mapping[int, tuple[float, float]],
    size: Mapping[int, tuple[float, float]],
) -> list[tuple[str, Route]]:
    """Return the label and the route of each edge; a large graph has few labels."""
    has_room = len(graph.edges) <= _ROOM_FOR_ACTIONS
    labels = [edge_label(edge, shading, has_room=has_room) for edge in graph.edges]

    def importance(index: int) -> tuple[bool, float]:
        edge = graph.edges[index]
        return edge.ends not in shading.own, -abs(shading.drawn_value(edge) or 0.0)

    found = routes(
        [(places[edge.source], places[edge.target]) for edge in graph.edges],
        labels,
        boxes={places[key]: (width / 2, height / 2) for key, (width, height) in size.items()},
        order=sorted(range(len(labels)), key=importance),
    )
    return [
        ("" if route.shift is None else label, route)
        for label, route in zip(labels, found, strict=True)
    ]


def _without_label(routed: Sequence[tuple[str, Route]]) -> list[str]:
    """Return a note for the legend on transitions whose action had no room."""
    number = sum(not label for label, _ in routed)
    return [f"{counted(number, 'action')} without room: point at the edge"] if number else []


class _Fill:
    """The colours of states: deeper means nearer to the goal, or a higher value."""

    def __init__(self, graph: TaskGraph, scale: StateScale) -> None:
        self._scale = scale
        values = [value for node in graph.nodes if (value := scale.of(node)) is not None]
        self._low, self._high = min(values, default=0.0), max(values, default=0.0)
        ends = (self._high, self._low) if scale.is_cost else (self._low, self._high)
        self.ends = [f"{end:.3g}" for end in ends]

    def of(self, node: Node) -> dict[str, str]:
        """Return the colour of a state; empty if its distance or value is unknown."""
        value = self._scale.of(node)
        if value is None:
            return {}
        share = (value - self._low) / ((self._high - self._low) or 1.0)
        depth = 1 - share if self._scale.is_cost else share
        return {"colour": sequential(depth), "ink": "#ffffff" if depth > 0.6 else "#1d2229"}


def _places(
    graph: TaskGraph, layers: Mapping[int, int], *, is_small: bool
) -> dict[int, tuple[float, float]]:
    """Return the positions of the states in pixels; the drawing is about as wide as the page."""
    places = layered_positions(graph, layers)
    narrow, low = (_BOX_LAYER, _BOX_PLACE) if is_small else (_LAYER, _PLACE)
    width = max((x for x, _ in places.values()), default=0) + 1
    height = 2 * max((y for _, y in places.values()), default=0) + 1
    layer = min(max(narrow, height * low * _ASPECT / width), _WIDEST_LAYER)
    place = min(max(low, width * narrow / _ASPECT / height), _WIDEST_PLACE)
    return {
        # Every second layer stands a little lower, so that no edge runs straight through a state.
        key: (x * layer, y * place + 14 * (x % 2))
        for key, (x, y) in places.items()
    }


def _kind(node: Node, *, is_start: bool) -> str:
    if node.is_goal:
        return "goal"
    if is_start:
        return "start"
    return "dead end" if node.goal_distance is None else "state"


def _edge(
    edge: Edge, shading: Shading, limit: float, most: int, label: str, route: Route
) -> dict[str, Any]:
    value = shading.drawn_value(edge)
    data: dict[str, Any] = {
        "id": edge_key(edge.ends),
        "source": node_key(edge.source),
        "target": node_key(edge.target),
        "label": label,
        "tip": edge_tip(edge, shading),
        "colour": diverging(value or 0.0, limit),
        "width": round(1.5 + 6 * (edge.visits / most) ** 0.5, 1),
        "bend": route.bend,
        "dx": round(route.shift[0]) if route.shift else 0,
        "dy": round(route.shift[1]) if route.shift else 0,
    }
    flags = {
        "pruned": edge.is_pruned,
        "blamed": (value or 0.0) < 0,
        "flipped": shading.is_flipped(edge),
        "conflict": shading.verdict(edge) == "conflicts",
    }
    return {"data": data | {name: True for name, is_set in flags.items() if is_set}}
