"""What the colours and widths of a drawing stand for, from the least to the greatest number."""

from dataclasses import dataclass

from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import Node, TaskGraph
from graphcredit.viewer.widgets.colours import SignedScale


@dataclass(frozen=True, kw_only=True, slots=True)
class Scales:
    """What the ends of the scales of colour and width stand for."""

    credit: SignedScale
    most: int
    """Visits of the widest transition."""
    low: float
    high: float
    """The least and the greatest number by which states are coloured."""

    @classmethod
    def of(cls, graph: TaskGraph, shading: Shading) -> "Scales":
        """Return scales that fit a graph."""
        values = [
            *map(shading.value, graph.edges),
            *(step.value for own in shading.own.values() for step in own),
        ]
        shades = [shade for shade in map(shading.states.of, graph.nodes) if shade is not None]
        return cls(
            credit=SignedScale.of(values),
            most=max((edge.visits for edge in graph.edges), default=1),
            low=min(shades, default=0.0),
            high=max(shades, default=0.0),
        )

    def shade(self, node: Node, shading: Shading) -> float | None:
        """Return how deep a state is coloured: deeper means nearer to the goal, or worth more."""
        value = shading.states.of(node)
        if value is None:
            return None
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return 1 - share if shading.states.is_cost else share

    def state_ends(self, shading: Shading) -> list[str]:
        """Return the ends of the scale of states as text, the pale one first."""
        ends = (self.high, self.low) if shading.states.is_cost else (self.low, self.high)
        return [f"{end:.3g}" for end in ends]
