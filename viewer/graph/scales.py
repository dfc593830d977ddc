"""What the colours and widths of a drawing stand for, from the least to the greatest number."""

from dataclasses import dataclass

from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import Node, TaskGraph
from graphcredit.viewer.widgets.colours import SignedScale

SEEN = "seen distance to the goal"
"""What the colours of states mean."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scales:
    """What the ends of the scales of colour and width stand for."""

    credit: SignedScale
    most: int
    """Visits of the widest transition."""
    farthest: float
    """The greatest seen distance of a state; the goal's is 0."""

    @classmethod
    def of(cls, graph: TaskGraph, shading: Shading) -> "Scales":
        """Return scales that fit a graph."""
        values = [
            *(edge.advantage for edge in graph.edges),
            *(step.value for own in shading.own.values() for step in own),
        ]
        distances = [d for node in graph.nodes if (d := node.goal_distance) is not None]
        return cls(
            credit=SignedScale.of(values),
            most=max((edge.visits for edge in graph.edges), default=1),
            farthest=max(distances, default=0.0),
        )

    def shade(self, node: Node) -> float | None:
        """Return how deep a state is coloured: the nearer to the goal, the deeper."""
        distance = node.goal_distance
        return None if distance is None else 1 - distance / (self.farthest or 1.0)

    def state_ends(self) -> list[str]:
        """Return the ends of the scale of states as text, the pale one first."""
        return [f"{self.farthest:.3g}", "0"]
