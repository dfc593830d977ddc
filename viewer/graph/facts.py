"""Details of states and transitions: actions by advantage, steps, trajectories as overlays."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.viewer.graph.cytoscape import (
    Ends,
    Shading,
    edge_key,
    edge_value,
    is_flipped,
    node_key,
)
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """An action taken in a state, and where it led."""

    action: str
    target: int
    visits: int
    won: float
    """Share of its steps whose trajectory won."""
    advantage: float | None
    """Mean advantage of its steps."""


def choices(steps: pa.Table, state_id: int, column: str) -> list[Choice]:
    """Return the actions taken in a state, the most advantageous first.

    Args:
        steps: From `queries.graphs.task_steps`.
        state_id: The state.
        column: The advantage, for example `gigpo_advantage`.
    """
    here = steps.filter(pc.field("state_id") == state_id)
    here = here.set_column(here.column_names.index("won"), "won", here["won"].cast(pa.int8()))
    grouped = here.group_by(["action", "next_state_id"]).aggregate(
        [("step_index", "count"), ("won", "mean"), (column, "mean")]
    )
    found = [
        Choice(
            action=row["action"],
            target=row["next_state_id"],
            visits=row["step_index_count"],
            won=row["won_mean"],
            advantage=row[f"{column}_mean"],
        )
        for row in grouped.to_pylist()
    ]
    return sorted(found, key=_rank)


def edge_steps(steps: pa.Table, ends: Ends) -> pa.Table:
    """Return the steps of a transition; columns that are null in all of them are left out."""
    source, target = ends
    found = steps.filter((pc.field("state_id") == source) & (pc.field("next_state_id") == target))
    empty = [name for name in found.column_names if found[name].null_count == len(found)]
    return found.drop_columns(["state_id", "next_state_id", *empty])


def trajectories(steps: pa.Table) -> dict[str, tuple[int, bool]]:
    """Return {trajectory: (number of steps, whether it won)}, those that lost first."""
    grouped = steps.group_by("trajectory_id").aggregate([("step_index", "count"), ("won", "max")])
    found = {
        row["trajectory_id"]: (row["step_index_count"], bool(row["won_max"]))
        for row in grouped.to_pylist()
    }
    return dict(sorted(found.items(), key=lambda item: (item[1][1], item[0])))


def states_on(steps: pa.Table, trajectory_id: str) -> list[int]:
    """Return the states that a trajectory went through, in order."""
    way = _way(steps, trajectory_id)
    return [source for source, _ in way] + [target for _, target in way[-1:]]


def names_on(steps: pa.Table, trajectory_id: str) -> list[str]:
    """Return the keys, in the drawing, of the states and transitions of a trajectory."""
    way = _way(steps, trajectory_id)
    states = {state for ends in way for state in ends}
    return [*map(node_key, sorted(states)), *(edge_key(ends) for ends in dict.fromkeys(way))]


def ranked_steps(steps: pa.Table, trajectory_id: str, column: str) -> list[dict[str, Any]]:
    """Return the steps of a trajectory that have an advantage, the greatest first."""
    mine = steps.filter((pc.field("trajectory_id") == trajectory_id) & pc.field(column).is_valid())
    return mine.sort_by([(column, "descending"), ("step_index", "ascending")]).to_pylist()


def step_ends(steps: pa.Table, trajectory_id: str, step_index: int) -> Ends | None:
    """Return the transition of one step; None if there is no such step."""
    way = _way(steps, trajectory_id)
    return way[step_index] if 0 <= step_index < len(way) else None


def advantages_at(graph: TaskGraph, other: TaskGraph) -> dict[Ends, float | None]:
    """Return the advantages of another graph of the same task, by the edges of this one.

    Iterations number their states differently, so states are matched by their text.
    """
    state_of = {(node.is_goal, _text(node)): node.state_id for node in graph.nodes}
    ours = {node.state_id: state_of.get((node.is_goal, _text(node))) for node in other.nodes}
    return {
        (source, target): edge.advantage
        for edge in other.edges
        if (source := ours[edge.source]) is not None and (target := ours[edge.target]) is not None
    }


def remarkable(graph: TaskGraph, shading: Shading, *, most: int) -> list[Edge]:
    """Return the transitions to look at first.

    In a comparison: those with opposite signs, then those with the greatest differences. Otherwise:
    half of them are the most credited ones, half the most blamed ones.
    """
    valued = [edge for edge in graph.edges if edge_value(edge, shading) is not None]
    if shading.others is not None:
        valued.sort(key=lambda edge: (not is_flipped(edge, shading), -abs(_value(edge, shading))))
        return valued[:most]
    valued.sort(key=lambda edge: _value(edge, shading), reverse=True)
    credited = [edge for edge in valued if _value(edge, shading) > 0][: most // 2]
    blamed = [edge for edge in valued if _value(edge, shading) < 0][-(most - most // 2) :]
    return [*credited, *blamed]


def _text(node: Node) -> str:
    """Return the text by which states are matched; empty for the goal, whose text varies."""
    return "" if node.is_goal else node.state


def _value(edge: Edge, shading: Shading) -> float:
    return edge_value(edge, shading) or 0.0


def _rank(choice: Choice) -> tuple[bool, float, int, str]:
    return choice.advantage is None, -(choice.advantage or 0.0), -choice.visits, choice.action


def _way(steps: pa.Table, trajectory_id: str) -> list[Ends]:
    mine = steps.filter(pc.field("trajectory_id") == trajectory_id)
    return list(zip(mine["state_id"].to_pylist(), mine["next_state_id"].to_pylist(), strict=True))
