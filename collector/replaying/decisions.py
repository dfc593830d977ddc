"""Read logged trajectories, and draw the decisions to replay."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from graphcredit.store import Store, read_steps
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.files.parse import parse_object

_OUTLINE = (
    *("task_id", "trajectory_id", "step_index"),
    *("terminated", "truncated", "success", "extra"),
)
_CONTENT = (
    *("trajectory_id", "step_index", "state", "next_state", "observation", "action"),
    *("admissible_actions", "is_action_valid", "reward", "terminated", "success"),
)

Key = tuple[str, int]
"""A decision: trajectory_id and step_index."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedStep:
    """What a log has of a step, as far as a replay compares it."""

    state: str
    next_state: str
    observation: str | None
    """The text shown, None if it is the state."""
    action: str
    admissible_actions: tuple[str, ...] | None
    is_action_valid: bool
    reward: float
    terminated: bool
    success: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """A complete trajectory, without what happened in it."""

    task_id: str
    trajectory_id: str
    num_steps: int
    marks: Mapping[str, Any]
    """`extra` of its first step."""

    @property
    def decisions(self) -> range:
        """Its own decisions: in a tree, the first steps may be copies of another trajectory's."""
        return range(int(self.marks.get("shared_steps", 0)), self.num_steps)


def read_outlines(store: Store, run_id: str, iteration: int) -> tuple[list[Outline], int]:
    """Return the complete trajectories of an iteration, by id, and the number of the others."""
    steps: dict[str, list[dict[str, Any]]] = {}
    tables = read_steps(store, columns=_OUTLINE, run_id=run_id, iteration=iteration)
    for table in tables:
        for row in table.to_pylist():
            steps.setdefault(row["trajectory_id"], []).append(row)
    for rows in steps.values():
        rows.sort(key=lambda row: row["step_index"])
    outlines = [
        Outline(
            task_id=rows[0]["task_id"],
            trajectory_id=name,
            num_steps=len(rows),
            marks=parse_object(rows[0]["extra"]),
        )
        for name, rows in sorted(steps.items())
        if _is_complete(rows)
    ]
    return outlines, len(steps) - len(outlines)


def _is_complete(rows: list[dict[str, Any]]) -> bool:
    ends = [bool(row["terminated"] or row["truncated"]) for row in rows]
    return (
        [row["step_index"] for row in rows] == list(range(len(rows)))
        and ends == [False] * (len(rows) - 1) + [True]
        and rows[-1]["success"] is not None
    )


def of_tasks(outlines: Iterable[Outline], task_ids: tuple[str, ...]) -> list[Outline]:
    """Return the trajectories of some tasks; of all if none is named."""
    found = [each for each in outlines if not task_ids or each.task_id in task_ids]
    missing = sorted(set(task_ids) - {each.task_id for each in found})
    if missing:
        raise OptionError(
            f"a task must have a complete trajectory in this iteration: {missing[0]!r} has none"
        )
    if not found:
        raise InputError("a replay needs complete trajectories: this iteration has none")
    return found


def draw(outlines: Iterable[Outline], number: int | None, seed: int) -> list[Key]:
    """Return decisions in random order; with a larger number, the same ones come first."""
    keys = [(each.trajectory_id, index) for each in outlines for index in each.decisions]
    keys.sort(key=lambda key: blake2b(f"{seed}/{key[1]}/{key[0]}".encode()).digest())
    return keys if number is None else keys[:number]


def read_trajectories(
    store: Store, run_id: str, iteration: int, task_id: str
) -> dict[str, list[LoggedStep]]:
    """Return the steps of the trajectories of a task, by trajectory."""
    found: dict[str, list[tuple[int, LoggedStep]]] = {}
    tables = read_steps(
        store, columns=_CONTENT, run_id=run_id, iteration=iteration, task_id=task_id
    )
    for table in tables:
        for row in table.to_pylist():
            found.setdefault(row["trajectory_id"], []).append((row["step_index"], _step(row)))
    trajectories = {name: sorted(steps, key=lambda pair: pair[0]) for name, steps in found.items()}
    for name, steps in trajectories.items():
        if any(a[0] == b[0] for a, b in pairwise(steps)):
            raise InputError(
                f"a trajectory must be in its iteration once: {name} was written again during the "
                "replay. `graphcredit check STORE` says more"
            )
    return {name: [step for _, step in steps] for name, steps in trajectories.items()}


def _step(row: Mapping[str, Any]) -> LoggedStep:
    admissible = row["admissible_actions"]
    return LoggedStep(
        state=row["state"],
        next_state=row["next_state"],
        observation=row["observation"],
        action=row["action"],
        admissible_actions=None if admissible is None else tuple(admissible),
        is_action_valid=row["is_action_valid"],
        reward=row["reward"],
        terminated=row["terminated"],
        success=bool(row["success"]),
    )
