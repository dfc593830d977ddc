"""The meaning of a drawing's colours and marks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphcredit.viewer.graph.task_graph import Edge, Ends


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnStep:
    """A step of the trajectory that is laid over the graph."""

    index: int
    """Index within the trajectory."""
    action: str
    value: float | None
    """Its own value; in a comparison, the difference."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shading:
    """The meaning of the colours of a drawing."""

    advantage: str
    """Name of the edges' colour scale, for the legend."""
    others: Mapping[Ends, float | None] | None = None
    """The advantages to subtract, for a comparison; None without one."""
    own: Mapping[Ends, Sequence[OwnStep]] = field(default_factory=dict[Ends, Sequence[OwnStep]])
    """The steps of a trajectory that is laid over the graph, by their transitions."""

    def value(self, edge: Edge) -> float | None:
        """Return the mean over a transition: its advantage, or the difference to the other one."""
        if self.others is None or edge.advantage is None:
            return edge.advantage
        other = self.others.get(edge.ends)
        return None if other is None else edge.advantage - other

    def drawn_value(self, edge: Edge) -> float | None:
        """Return the value of a transition's colour: the trajectory's own where it went."""
        values = [step.value for step in self.own.get(edge.ends, ()) if step.value is not None]
        if edge.ends in self.own:
            return sum(values) / len(values) if values else None
        return self.value(edge)

    def is_flipped(self, edge: Edge) -> bool:
        """Return whether the two compared advantages have opposite signs."""
        other = self.others.get(edge.ends) if self.others else None
        return edge.advantage is not None and other is not None and edge.advantage * other < 0


def signed(value: float | None) -> str:
    """Return an advantage as text; a dash for None."""
    return "–" if value is None else f"{value:+.2f}"
