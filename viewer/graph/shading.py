"""The meaning of a drawing's colours and marks, and the true distances behind some of them.

The log has true distances where the environment knows them; the graph itself has only what the
group saw.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.viewer.graph.task_graph import Edge, Ends
from graphcredit.viewer.queries.truth import Verdict, verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class TrueDistances:
    """What the environment knows of a graph."""

    of_state: Mapping[int, tuple[float, float]]
    """The least and the greatest true distance at a state: they differ where its text hides
    something, or where texts were merged."""
    progress: Mapping[Ends, float]
    """Mean true progress of the steps of a transition."""

    def words(self, state_id: int) -> str:
        """Return the true distance of a state as text; empty if it is not known."""
        if state_id not in self.of_state:
            return ""
        low, high = self.of_state[state_id]
        return f"true {low:g}" if low == high else f"true {low:g} to {high:g}"

    def verdict(self, edge: Edge) -> Verdict | None:
        """Return whether the mean advantage of a transition has the sign of its true progress."""
        return verdict(edge.advantage, self.progress.get(edge.ends))


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
    truth: TrueDistances | None = None
    """What to mark transitions by; None for no marks."""

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

    def verdict(self, edge: Edge) -> Verdict | None:
        """Return what the truth says of a transition's mean advantage."""
        return None if self.truth is None else self.truth.verdict(edge)


def signed(value: float | None) -> str:
    """Return an advantage as text; a dash for None."""
    return "–" if value is None else f"{value:+.2f}"


def true_distances(steps: pa.Table) -> TrueDistances | None:
    """Return the true distances of a task's steps; None if none was logged."""
    ends = (("state_id", "oracle_distance"), ("next_state_id", "next_oracle_distance"))
    seen = pa.concat_tables(
        steps.select(names).rename_columns(["state_id", "distance"]).cast(_SEEN) for names in ends
    )
    seen = seen.filter(pc.is_finite(seen["distance"]))
    progress = pc.subtract(steps["oracle_distance"], steps["next_oracle_distance"])
    moved = steps.select(["state_id", "next_state_id"]).append_column("progress", progress)
    moved = moved.filter(pc.is_finite(progress))
    if not seen.num_rows:
        return None
    return TrueDistances(
        of_state={
            row["state_id"]: (row["distance_min"], row["distance_max"])
            for row in _grouped(seen, ["state_id"], [("distance", "min"), ("distance", "max")])
        },
        progress={
            (row["state_id"], row["next_state_id"]): row["progress_mean"]
            for row in _grouped(moved, ["state_id", "next_state_id"], [("progress", "mean")])
        },
    )


_SEEN = pa.schema([("state_id", pa.int32()), ("distance", pa.float64())])


def _grouped(
    table: pa.Table, keys: list[str], numbers: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    return table.group_by(keys).aggregate(numbers).to_pylist()
