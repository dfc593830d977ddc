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
    """Its own advantage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shading:
    """The meaning of the colours of a drawing."""

    advantage: str
    """Name of the edges' colour scale, for the legend."""
    own: Mapping[Ends, Sequence[OwnStep]] = field(default_factory=dict[Ends, Sequence[OwnStep]])
    """The steps of a trajectory that is laid over the graph, by their transitions."""

    def drawn_value(self, edge: Edge) -> float | None:
        """Return the advantage of a transition's colour: the trajectory's own where it went."""
        values = [step.value for step in self.own.get(edge.ends, ()) if step.value is not None]
        if edge.ends in self.own:
            return sum(values) / len(values) if values else None
        return edge.advantage


def signed(value: float | None) -> str:
    """Return an advantage as text; a dash for None."""
    return "–" if value is None else f"{value:+.2f}"
