"""The true distance of the states of a graph, and the true progress of its transitions.

The log has them where the environment knows them; the graph itself has only what the group saw.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.viewer.graph.task_graph import Edge
from graphcredit.viewer.queries.truth import Verdict, verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class TrueDistances:
    """What the environment knows of a graph."""

    of_state: Mapping[int, tuple[float, float]]
    """The least and the greatest true distance at a state: they differ where its text hides
    something, or where texts were merged."""
    progress: Mapping[tuple[int, int], float]
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


def true_distances(steps: pa.Table) -> TrueDistances | None:
    """Return the true distances of a task's steps; None if none was logged.

    Args:
        steps: From `queries.graphs.task_steps`.
    """
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
