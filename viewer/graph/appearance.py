"""The looks of states and transitions: colours, widths, words and marks, as Cytoscape's data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.viewer.graph.keys import edge_key, node_key
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.words import box_label, edge_tip, node_tip, scale_ends, state_name
from graphcredit.viewer.widgets.colours import colour_limit, diverging, sequential


@dataclass(frozen=True, kw_only=True, slots=True)
class Scales:
    """What the ends of the scales of colour and width stand for."""

    limit: float
    """Of advantages: the scale goes from -limit to limit."""
    edge_ends: Sequence[str]
    """The ends of the scale of advantages, as text."""
    most: int
    """Visits of the widest transition."""
    low: float
    high: float
    """The least and the greatest number by which states are coloured."""

    @classmethod
    def of(cls, graphs: Iterable[TaskGraph], shading: Shading) -> "Scales":
        """Return scales that fit some graphs."""
        values: list[float] = []
        shades: list[float] = []
        most = 1
        for graph in graphs:
            drawn = map(shading.drawn_value, graph.edges)
            values += [value for value in drawn if value is not None]
            known = map(shading.states.of, graph.nodes)
            shades += [value for value in known if value is not None]
            most = max([most, *(edge.visits for edge in graph.edges)])
        limit = colour_limit(values)
        return cls(
            limit=limit,
            edge_ends=scale_ends(values, limit),
            most=most,
            low=min(shades, default=0.0),
            high=max(shades, default=0.0),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Appearance:
    """How the states and transitions of one graph look."""

    shading: Shading
    """The meaning of the colours."""
    scales: Scales
    start: int
    """The id of the first state."""
    apart: Mapping[int, str] | None
    """What distinguishes states that are boxes; None if they are circles."""

    def state(self, node: Node) -> dict[str, Any]:
        """Return the data of a state, without its size."""
        is_box = self.apart is not None
        return {
            "id": node_key(node.state_id),
            "label": state_name(node) if self.apart is None else box_label(node, self.apart),
            "tip": node_tip(node, self.shading),
            "kind": self._kind(node),
            **({"box": True} if is_box else {}),
            **self._fill(node),
        }

    def transition(self, edge: Edge) -> dict[str, Any]:
        """Return the data of a transition, without its route."""
        value = self.shading.drawn_value(edge)
        flags = {
            "pruned": edge.is_pruned,
            "blamed": (value or 0.0) < 0,
            "flipped": self.shading.is_flipped(edge),
            "conflict": self.shading.verdict(edge) == "conflicts",
        }
        return {
            "id": edge_key(edge.ends),
            "source": node_key(edge.source),
            "target": node_key(edge.target),
            "tip": edge_tip(edge, self.shading),
            "colour": diverging(value or 0.0, self.scales.limit),
            "width": round(1.5 + 6 * (edge.visits / self.scales.most) ** 0.5, 1),
        } | {name: True for name, is_set in flags.items() if is_set}

    def legend(self, notes: Sequence[str]) -> dict[str, Any]:
        """Return the legend, with some notes on marks."""
        scale = self.shading.states
        low, high = self.scales.low, self.scales.high
        ends = (high, low) if scale.is_cost else (low, high)
        return {
            "advantage": self.shading.advantage,
            "edge_ends": self.scales.edge_ends,
            "edge_scale": [diverging(step, 4) for step in range(-4, 5)],
            "state": scale.title,
            "state_scale": [sequential(step / 4) for step in range(5)],
            "state_ends": [f"{end:.3g}" for end in ends],
            "marks": list(notes),
        }

    def _fill(self, node: Node) -> dict[str, str]:
        """Return the colour of a state; empty if its distance or value is unknown.

        Deeper means nearer to the goal, or a higher value.
        """
        value = self.shading.states.of(node)
        if value is None:
            return {}
        share = (value - self.scales.low) / ((self.scales.high - self.scales.low) or 1.0)
        depth = 1 - share if self.shading.states.is_cost else share
        return {"colour": sequential(depth), "ink": "#ffffff" if depth > 0.6 else "#1d2229"}

    def _kind(self, node: Node) -> str:
        if node.is_goal:
            return "goal"
        if node.state_id == self.start:
            return "start"
        return "dead end" if node.goal_distance is None else "state"
