"""Convert a part of a task's graph to Cytoscape's form: positions, colours, sizes and labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.layout import layered_positions
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.widgets.colours import colour_limit, diverging, sequential
from graphcredit.viewer.widgets.text import one_line, visible

_LAYER, _PLACE = 170, 70
_ASPECT = 1.5
_WIDEST_LAYER, _WIDEST_PLACE = 420, 190
_ROOM_FOR_ACTIONS = 60
_LABEL_LENGTH = 22

Ends: TypeAlias = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class StateScale:
    """A number by which states are coloured."""

    title: str
    """For the legend."""
    of: Callable[[Node], float | None]
    """Returns the number of a state; None if it is unknown."""
    is_cost: bool = False
    """Whether less is better."""


STATE_SCALES: Mapping[str, StateScale] = {
    "distance": StateScale(
        title="distance to the goal", of=lambda node: node.goal_distance, is_cost=True
    ),
    "value": StateScale(title="RewardFlow value", of=lambda node: node.rewardflow_value),
    "chance": StateScale(title="chance to win", of=lambda node: node.reach_value),
}
"""By their names in the address of a page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shading:
    """The meaning of the colours of a drawing."""

    advantage: str
    """Name of the edges' colour scale, for the legend."""
    others: Mapping[Ends, float | None] | None = None
    """The advantages to subtract, for a comparison; None without one."""
    states: StateScale = STATE_SCALES["distance"]
    """What the colours of states mean."""


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


def signed(value: float | None) -> str:
    """Return an advantage as text; a dash for None."""
    return "–" if value is None else f"{value:+.2f}"


def edge_value(edge: Edge, shading: Shading) -> float | None:
    """Return the value of an edge's colour: its advantage, or the difference to the other one."""
    if shading.others is None or edge.advantage is None:
        return edge.advantage
    other = shading.others.get(edge.ends)
    return None if other is None else edge.advantage - other


def is_flipped(edge: Edge, shading: Shading) -> bool:
    """Return whether the two compared advantages have opposite signs."""
    other = shading.others.get(edge.ends) if shading.others else None
    return edge.advantage is not None and other is not None and edge.advantage * other < 0


def state_name(node: Node) -> str:
    """Return the label of a state: its number and its first words, on one line."""
    if node.is_goal:
        return "GOAL"
    first = visible(node.state).strip().partition("\n")[0].strip("-= \t")
    return f"{node.state_id}  {one_line(first, 18)}"


def draw_part(graph: TaskGraph, layers: Mapping[int, int], shading: Shading) -> Drawing:
    """Return the drawing of a graph.

    Args:
        graph: The part of the task's graph that is shown.
        layers: From `layers_of` the whole graph.
        shading: The meaning of the colours.
    """
    places = _places(graph, layers)
    limit = colour_limit(edge_value(edge, shading) for edge in graph.edges)
    most = max((edge.visits for edge in graph.edges), default=1)
    most_visits = max((node.visits for node in graph.nodes), default=1)
    fill = _Fill(graph, shading.states)
    start = min(layers, key=layers.__getitem__)
    return Drawing(
        nodes=[
            {
                "data": {
                    "id": node_key(node.state_id),
                    "label": state_name(node),
                    "tip": _node_tip(node),
                    "size": round(18 + 26 * (node.visits / max(most_visits, 1)) ** 0.5),
                    "kind": _kind(node, is_start=node.state_id == start),
                    **fill.of(node),
                },
                "position": places[node.state_id],
            }
            for node in graph.nodes
        ],
        edges=[_edge(edge, shading, limit, most, layers, graph) for edge in graph.edges],
        legend={
            "advantage": shading.advantage,
            "limit": f"{limit:.2g}",
            "edge_scale": [diverging(step, 4) for step in range(-4, 5)],
            "state": shading.states.title,
            "state_scale": [sequential(step / 4) for step in range(5)],
            "state_ends": fill.ends,
            "flips": shading.others is not None,
        },
    )


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
        return {"colour": sequential(1 - share if self._scale.is_cost else share)}


def _places(graph: TaskGraph, layers: Mapping[int, int]) -> dict[int, dict[str, float]]:
    """Return the positions of the states in pixels; the drawing is about as wide as the page."""
    places = layered_positions(graph, layers)
    width = max((x for x, _ in places.values()), default=0) + 1
    height = 2 * max((y for _, y in places.values()), default=0) + 1
    layer = min(max(_LAYER, height * _PLACE * _ASPECT / width), _WIDEST_LAYER)
    place = min(max(_PLACE, width * _LAYER / _ASPECT / height), _WIDEST_PLACE)
    return {
        # Every second layer stands a little lower, so that no edge runs straight through a state.
        key: {"x": x * layer, "y": y * place + 14 * (x % 2)}
        for key, (x, y) in places.items()
    }


def _kind(node: Node, *, is_start: bool) -> str:
    if node.is_goal:
        return "goal"
    if is_start:
        return "start"
    return "dead end" if node.goal_distance is None else "state"


def _node_tip(node: Node) -> str:
    facts = [
        "no way to the goal was seen"
        if node.goal_distance is None
        else f"{node.goal_distance:g} to the goal",
        f"{counted(node.visits, 'visit')}, {node.success_rate:.0%} won",
    ]
    if node.num_merged > 1:
        facts.append(counted(node.num_merged, "text"))
    return f"{state_name(node)}\n{' · '.join(facts)}\n{one_line(node.state, 160)}"


def _edge(
    edge: Edge,
    shading: Shading,
    limit: float,
    most: int,
    layers: Mapping[int, int],
    graph: TaskGraph,
) -> dict[str, Any]:
    value = edge_value(edge, shading)
    label, *others = (one_line(action, _LABEL_LENGTH) for action in edge.actions)
    more = f" +{len(others)}" if others else ""
    data: dict[str, Any] = {
        "id": edge_key(edge.ends),
        "source": node_key(edge.source),
        "target": node_key(edge.target),
        "label": label + more if len(graph.edges) <= _ROOM_FOR_ACTIONS else "",
        "tip": f"{' | '.join(one_line(action) for action in edge.actions[:6])}\n"
        f"{shading.advantage} {signed(value)} · {counted(edge.visits, 'step')}"
        f"{' · pruned' if edge.is_pruned else ''}",
        "colour": diverging(value or 0.0, limit),
        "width": round(1.5 + 6 * (edge.visits / most) ** 0.5, 1),
        "bend": _bend(layers[edge.source], layers[edge.target]),
    }
    flags = {"pruned": edge.is_pruned, "flipped": is_flipped(edge, shading)}
    return {"data": data | {name: True for name, is_set in flags.items() if is_set}}


def _bend(source: int, target: int) -> int:
    """Return the bend of an edge in pixels, so that it avoids states and its reverse edge."""
    if target == source + 1:
        return 0
    return 34 if target == source else 26 * min(abs(target - source), 4)
