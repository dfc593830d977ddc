"""Convert a part of a task's graph to Cytoscape's form: positions, colours, sizes and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.layout import layered_positions
from graphcredit.viewer.graph.names import distinctions, headline
from graphcredit.viewer.graph.routes import Route, routes
from graphcredit.viewer.graph.shading import Ends, OwnStep, Shading, StateScale, signed
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.true_distances import TrueDistances
from graphcredit.viewer.graph.visible_part import READABLE
from graphcredit.viewer.queries.truth import MARKS
from graphcredit.viewer.widgets.colours import colour_limit, diverging, sequential
from graphcredit.viewer.widgets.text import one_line

_LAYER, _PLACE = 170, 70
_ASPECT = 1.5
_WIDEST_LAYER, _WIDEST_PLACE = 420, 190
_ROOM_FOR_ACTIONS = 110
_BOX = (144, 62)
_BOX_LAYER, _BOX_PLACE = 178, 112
_MOST_ROUTED = 400
"""Most edges to bend around states one by one; it takes a millisecond for each."""
_LABEL_LENGTH = 22
_MOST_NUMBERS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """The drawing without the selection, so that a selection does not change it."""

    nodes: Sequence[Mapping[str, Any]]
    edges: Sequence[Mapping[str, Any]]
    legend: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {"nodes": self.nodes, "edges": self.edges, "legend": self.legend}


def node_key(state_id: int) -> str:
    """Return the key of a state in the drawing."""
    return f"n{state_id}"


def edge_key(ends: Ends) -> str:
    """Return the key of a transition in the drawing."""
    return f"e{ends[0]}-{ends[1]}"


def parse_key(key: str) -> int | Ends | None:
    """Return the state, or the ends of the transition, of a key; None if the key is invalid."""
    numbers = key[1:].split("-")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    match key[:1], [int(number) for number in numbers]:
        case "n", [state_id]:
            return state_id
        case "e", [source, target]:
            return source, target
        case _:
            return None


def state_name(node: Node) -> str:
    """Return the label of a state: its number and its first words, on one line."""
    if node.is_goal:
        return "GOAL"
    return f"{node.state_id}  {one_line(headline(node), 18)}"


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
                    "label": _box_label(node, apart) if is_small else state_name(node),
                    "tip": _node_tip(node, shading),
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
            "marks": [*(["in boxes: seen distance, visits"] if is_small else []), *_marks(shading)],
        },
    )


def _box_label(node: Node, apart: Mapping[int, str]) -> str:
    """Return three lines: the state, what distinguishes it, its seen distance and its visits."""
    distance = "no way seen" if node.goal_distance is None else f"{node.goal_distance:g} to go"
    name = "GOAL" if node.is_goal else f"{node.state_id} {one_line(headline(node), 12)}"
    told = apart.get(node.state_id)
    return "\n".join([name, *([told] if told else []), f"{distance} · {node.visits}×"])


def _routed(
    graph: TaskGraph,
    shading: Shading,
    places: Mapping[int, tuple[float, float]],
    size: Mapping[int, tuple[float, float]],
) -> list[tuple[str, Route]]:
    """Return the label and the route of each edge; a large graph has straight edges, no labels."""
    has_room = len(graph.edges) <= _ROOM_FOR_ACTIONS
    labels = [_edge_label(edge, shading, has_room=has_room) for edge in graph.edges]
    if len(graph.edges) > _MOST_ROUTED:
        return [(label, Route(bend=16.0)) for label in labels]

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


def scale_ends(values: Sequence[float], limit: float) -> list[str]:
    """Return the ends of a scale from -limit to limit as text; they say if values lie beyond."""
    is_below, is_above = min(values, default=0.0) < -limit, max(values, default=0.0) > limit
    return [f"{'≤ ' if is_below else ''}-{limit:.2g}", f"{'≥ ' if is_above else ''}+{limit:.2g}"]


def distance_words(node: Node, truth: TrueDistances | None) -> str:
    """Return the seen distance of a state and the true one, as far as they are known."""
    seen = (
        "no way to the goal was seen"
        if node.goal_distance is None
        else f"seen {node.goal_distance:g} to the goal"
    )
    known = "" if truth is None else truth.words(node.state_id)
    return f"{seen} · {known}" if known else seen


def _marks(shading: Shading) -> list[str]:
    """Return the notes of the legend about marks on transitions."""
    notes = ["⇄ yellow: the signs differ"] if shading.others is not None else []
    if shading.truth is not None:
        notes.append("✓ ✗: the mean advantage has the sign of the true progress, or not")
    if shading.own:
        notes.append("numbers: steps of the trajectory, in its own colours; elsewhere means")
    return notes


def _node_tip(node: Node, shading: Shading) -> str:
    facts = [
        distance_words(node, shading.truth),
        f"{counted(node.visits, 'visit')}, {node.success_rate:.0%} succeeded",
    ]
    if node.num_merged > 1:
        facts.append(counted(node.num_merged, "text"))
    return f"{state_name(node)}\n{' · '.join(facts)}\n{one_line(node.state, 160)}"


def _edge(
    edge: Edge, shading: Shading, limit: float, most: int, label: str, route: Route
) -> dict[str, Any]:
    value = shading.drawn_value(edge)
    data: dict[str, Any] = {
        "id": edge_key(edge.ends),
        "source": node_key(edge.source),
        "target": node_key(edge.target),
        "label": label,
        "tip": _edge_tip(edge, shading),
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


def _edge_label(edge: Edge, shading: Shading, *, has_room: bool) -> str:
    """Return the marks of a transition, the trajectory's step numbers, and its action."""
    own = shading.own.get(edge.ends, ())
    flip = "⇄" if shading.is_flipped(edge) else ""
    marks = f"{flip}{MARKS[shading.verdict(edge)]}"
    if not has_room and not own:
        return marks.strip("✓")
    actions = list(dict.fromkeys(step.action for step in own)) or edge.actions
    first, *others = (one_line(action, _LABEL_LENGTH) for action in actions)
    more = f" +{len(others)}" if others else ""
    return " ".join(filter(None, [marks, _numbers(own), first + more]))


def _numbers(own: Sequence[OwnStep]) -> str:
    shown = ", ".join(str(step.index) for step in own[:_MOST_NUMBERS])
    return f"{shown}{', …' if len(own) > _MOST_NUMBERS else ''}:" if own else ""


def _edge_tip(edge: Edge, shading: Shading) -> str:
    verdict = shading.verdict(edge)
    notes = [
        f"{shading.advantage} {signed(shading.value(edge))}",
        counted(edge.visits, "step"),
        *(["pruned"] if edge.is_pruned else []),
        *([f"{verdict} with the true progress"] if verdict else []),
    ]
    lines = [
        " | ".join(one_line(action) for action in edge.actions[:6]),
        " · ".join(notes),
        *(
            f"step {step.index}: {signed(step.value)} {one_line(step.action)}"
            for step in shading.own.get(edge.ends, ())[:6]
        ),
    ]
    return "\n".join(lines)
