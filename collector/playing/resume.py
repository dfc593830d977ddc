"""Find the rollouts of a collection that the store lacks, to start or to resume it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.collector.environments.base import Task
from graphcredit.collector.playing.schedule import Rollout, Settings
from graphcredit.store import Store, read_steps
from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.files.parse import parse_object

_WHAT_TO_DO = (
    "If its shard was taken out of the store, repair it and bring it back; or give this collection "
    "another --run or --iteration."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """The rollouts to play, and the number of those that are complete."""

    rollouts: list[Rollout]
    """The rollouts to play, task by task; for a tree, its first trajectory."""
    num_complete: int
    """Number of trajectories that the store has already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recorded:
    """A trajectory of the store."""

    is_complete: bool
    has_first_step: bool
    extra: Mapping[str, Any]
    """`extra` of its first step; empty if none was recorded."""


def missing_rollouts(
    store: Store,
    *,
    run_id: str,
    iteration: int,
    tasks: Iterable[Task],
    group_size: int,
    settings: Settings,
) -> Missing:
    """Return the rollouts that are not complete in the store, task by task.

    Raises:
        OptionError: The store has trajectories of these tasks that were played with other settings.
        InputError: A trajectory has lost its first step, or a tree one of its trajectories.
    """
    recorded = _recorded(store, run_id, iteration)
    missing: list[Rollout] = []
    num_complete = 0
    for task in tasks:
        group = _group(task, group_size, recorded, settings)
        due = [rollout for rollout in group if rollout.trajectory_id not in recorded]
        missing += due if settings.tree_size is None else _tree(group, due)
        num_complete += len(group) - len(due)
    return Missing(rollouts=missing, num_complete=num_complete)


def _group(
    task: Task, size: int, recorded: Mapping[str, _Recorded], settings: Settings
) -> list[Rollout]:
    """Return the rollouts of a group: for each index, the complete one, or the one to play next."""
    root = recorded.get(Rollout(task=task, index=0, attempt=0).trajectory_id)
    if settings.tree_size is not None and root is not None:
        size = min(size, root.extra.get("num_paths", size))
    return [_latest(task, index, recorded, settings) for index in range(size)]


def _tree(group: Sequence[Rollout], due: Sequence[Rollout]) -> list[Rollout]:
    """Return the first trajectory of a tree, which stands for all, if it is to be played."""
    if due and len(due) < len(group):
        complete = ", ".join(rollout.trajectory_id for rollout in group if rollout not in due)
        raise InputError(
            f"a tree must be in the store as a whole: it has {complete}, but not "
            f"{due[0].trajectory_id} of the same tree. {_WHAT_TO_DO}"
        )
    return list(due[:1])


def _latest(
    task: Task, index: int, recorded: Mapping[str, _Recorded], settings: Settings
) -> Rollout:
    """Return the complete attempt at a rollout, or else the next attempt to play."""
    rollout = Rollout(task=task, index=index, attempt=0)
    while (found := recorded.get(rollout.trajectory_id)) is not None:
        if not found.has_first_step:
            raise InputError(
                "a rollout must have its first step, which records its settings: "
                f"{rollout.trajectory_id} is in the store without it. {_WHAT_TO_DO}"
            )
        if not settings.are_those_of(found.extra):
            raise OptionError(
                "the rollouts of one group must be played with the same settings: rollout "
                f"{rollout.trajectory_id} is in the store with {json.dumps(dict(found.extra))}, "
                f"asked for {settings.to_json()}. Give this collection another --run or "
                "--iteration."
            )
        if found.is_complete:
            break
        rollout = replace(rollout, attempt=rollout.attempt + 1)
    return rollout


def _recorded(store: Store, run_id: str, iteration: int) -> dict[str, _Recorded]:
    """Return the trajectories of an iteration in the store, by id."""
    columns = ["trajectory_id", "step_index", "success", "extra"]
    tables = list(read_steps(store, columns=columns, run_id=run_id, iteration=iteration))
    if not tables:
        return {}
    steps = pa.concat_tables(tables)
    extra = steps.filter(pc.field("step_index") == 0)
    extras = dict(zip(extra["trajectory_id"].to_pylist(), extra["extra"].to_pylist(), strict=True))
    counts = steps.group_by("trajectory_id").aggregate([("success", "count")])
    return {
        row["trajectory_id"]: _Recorded(
            is_complete=row["success_count"] > 0,
            has_first_step=row["trajectory_id"] in extras,
            extra=parse_object(extras.get(row["trajectory_id"])),
        )
        for row in counts.to_pylist()
    }
