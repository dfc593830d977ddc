"""Details of states and transitions: actions by advantage, steps, overlays, states with words."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.viewer.graph.shading import OwnStep
from graphcredit.viewer.graph.task_graph import Ends, TaskGraph, edge_key, node_key
from graphcredit.viewer.queries.outcomes import are_graded, outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """An action taken in a state, and where it led."""

    action: str
    target: int
    visits: int
    """Its steps."""
    num_trajectories: int
    num_succeeded: int | None
    """Of these trajectories; None where nothing says who did."""
    advantage: float | None
    """Mean advantage of its steps."""


def own_steps(steps: pa.Table, trajectory_id: str, column: str) -> dict[Ends, list[OwnStep]]:
    """Return the steps of a trajectory by their transitions, in time, with an advantage."""
    of_transition: dict[Ends, list[OwnStep]] = {}
    for row in steps.filter(pc.field("trajectory_id") == trajectory_id).to_pylist():
        step = OwnStep(index=row["step_index"], action=row["action"], value=row[column])
        of_transition.setdefault((row["state_id"], row["next_state_id"]), []).append(step)
    return of_transition


def choices(steps: pa.Table, state_id: int, column: str) -> list[Choice]:
    """Return the actions taken in a state, the most advantageous first."""
    here = steps.filter(pc.field("state_id") == state_id)
    winner = pc.if_else(here["succeeded"], here["trajectory_id"], pa.scalar(None, pa.string()))
    grouped = here.append_column("winner", winner).group_by(["action", "next_state_id"])
    distinct = [("trajectory_id", "count_distinct"), ("winner", "count_distinct")]
    grouped = grouped.aggregate(
        [("step_index", "count"), ("succeeded", "count"), *distinct, (column, "mean")]
    )
    taken = [
        Choice(
            action=row["action"],
            target=row["next_state_id"],
            visits=row["step_index_count"],
            num_trajectories=row["trajectory_id_count_distinct"],
            num_succeeded=row["winner_count_distinct"] if row["succeeded_count"] else None,
            advantage=row[f"{column}_mean"],
        )
        for row in grouped.to_pylist()
    ]
    return sorted(taken, key=_rank)


def edge_steps(steps: pa.Table, ends: Ends) -> pa.Table:
    """Return the steps of a transition; columns that are null in all of them are left out."""
    source, target = ends
    taken = steps.filter((pc.field("state_id") == source) & (pc.field("next_state_id") == target))
    empty = [name for name in taken.column_names if taken[name].null_count == len(taken)]
    unwanted = {"state_id", "next_state_id", "is_telling", *empty} & {*taken.column_names}
    return taken.drop_columns(sorted(unwanted))


def telling_ends(steps: pa.Table) -> set[Ends]:
    """Return the transitions with a step that may head a list, see `queries.telling`."""
    told = steps.filter(steps["is_telling"])
    return {*zip(told["state_id"].to_pylist(), told["next_state_id"].to_pylist(), strict=True)}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryEnd:
    """One trajectory of a task."""

    num_steps: int
    ending: str
    """How it ended; of scores, none is a failure."""


def trajectories(steps: pa.Table) -> dict[str, TrajectoryEnd]:
    """Return the trajectories by name, those that did not succeed first."""
    totals = [("step_index", "count"), ("succeeded", "max"), ("reward", "sum")]
    ended = steps.group_by("trajectory_id").aggregate(totals)
    ended = ended.rename_columns(["name", "num_steps", "success", "return"])
    is_graded = are_graded(ended)
    return {
        row["name"]: TrajectoryEnd(
            num_steps=row["num_steps"], ending=outcome(row["success"], is_graded=is_graded)
        )
        for row in ended.sort_by([("success", "ascending"), ("name", "ascending")]).to_pylist()
    }


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
    """Return the steps of a trajectory that have an advantage, the greatest first.

    Those with nothing to compare them with come last.
    """
    mine = steps.filter((pc.field("trajectory_id") == trajectory_id) & pc.field(column).is_valid())
    keys = [("is_telling", "descending"), (column, "descending"), ("step_index", "ascending")]
    return mine.sort_by(keys).to_pylist()


def step_ends(steps: pa.Table, trajectory_id: str, step_index: int) -> Ends | None:
    """Return the transition of one step; None if there is no such step."""
    way = _way(steps, trajectory_id)
    return way[step_index] if 0 <= step_index < len(way) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundStates:
    """What was searched for, and the states whose text contains it."""

    words: str = ""
    """Empty if nothing is searched for."""
    keys: Sequence[str] = ()
    """Keys of the states in the drawing."""
    total: int = 0
    """How many there are in the whole graph."""

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {"words": self.words, "keys": list(self.keys), "total": self.total}


def states_with(graph: TaskGraph, words: str) -> list[int]:
    """Return the states whose text contains some words, as they are, but for upper and lower case.

    Empty words are in no state.
    """
    wanted = words.strip().lower()
    if not wanted:
        return []
    return [node.state_id for node in graph.nodes if wanted in node.state.lower()]


def found(graph: TaskGraph, shown: TaskGraph, words: str) -> FoundStates:
    """Return the states of a graph with some words, and which of them are shown."""
    there = {node.state_id for node in shown.nodes}
    states = states_with(graph, words)
    return FoundStates(
        words=words, keys=[node_key(state) for state in states if state in there], total=len(states)
    )


def _rank(choice: Choice) -> tuple[bool, float, int, str]:
    return choice.advantage is None, -(choice.advantage or 0.0), -choice.visits, choice.action


def _way(steps: pa.Table, trajectory_id: str) -> list[Ends]:
    mine = steps.filter(pc.field("trajectory_id") == trajectory_id)
    return list(zip(mine["state_id"].to_pylist(), mine["next_state_id"].to_pylist(), strict=True))
