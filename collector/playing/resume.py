"""What of a collection is not in the store yet: the same whether it goes on or is begun."""

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

_ROUNDING = 1e-12
"""Of the largest return: the order in which rewards are summed."""

_WHAT_TO_DO = (
    "If `graphcredit check STORE --quarantine` has moved it, mend its shard and put it back from "
    "quarantine/; or give this collection another --run or --iteration."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """What is to be played, and what need not be."""

    rollouts: list[Rollout]
    """What to play, task by task; of a tree, its first trajectory."""
    num_complete: int
    """Trajectories that are there."""
    num_resampled: int
    """Tasks of which this is not the first sample: all they had so far ended alike."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recorded:
    """What the store has of a trajectory."""

    is_complete: bool
    has_first_step: bool
    extra: Mapping[str, Any]
    """Of its first step; empty where none was recorded."""
    reward: float
    """Sum over its steps."""


def missing_rollouts(
    store: Store,
    *,
    run_id: str,
    iteration: int,
    tasks: Iterable[Task],
    group_size: int,
    settings: Settings,
    num_resamples: int = 0,
) -> Missing:
    """Return the trajectories that are not complete in the store, task by task.

    A task is sampled a group at a time. The next group is due when the ones before it are complete
    and all trajectories of the task have the same return, since they teach nothing until one
    differs. Not so after a tree of one path: at no state of it was a second decision worth asking
    for. Source: dynamic sampling, DAPO.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        tasks: What to play.
        group_size: Trajectories of a group; of a tree, the most it may have.
        settings: How to play.
        num_resamples: Groups that a task may have after its first.

    Raises:
        OptionError: The store has trajectories of these tasks that were played otherwise.
        InputError: A trajectory has lost its first step, or a tree one of its trajectories.
    """
    recorded = _recorded(store, run_id, iteration)
    missing: list[Rollout] = []
    num_complete = num_resampled = 0
    for task in tasks:
        returns: list[float] = []
        for first in range(0, group_size * (1 + num_resamples), group_size):
            group = _group(task, range(first, first + group_size), recorded, settings)
            due = [rollout for rollout in group if rollout.trajectory_id not in recorded]
            missing += due if settings.tree_size is None else _tree(group, due)
            returns += [recorded[r.trajectory_id].reward for r in group if r not in due]
            num_resampled += bool(due) and first > 0
            is_path = len(group) == 1 < group_size
            if due or is_path or _differ(returns):
                break
        num_complete += len(returns)
    return Missing(rollouts=missing, num_complete=num_complete, num_resampled=num_resampled)


def _differ(returns: Sequence[float]) -> bool:
    """Return whether returns differ by more than rounding."""
    rounding = _ROUNDING * max(map(abs, returns))
    return any(abs(each - returns[0]) > rounding for each in returns)


def _group(
    task: Task, indices: range, recorded: Mapping[str, _Recorded], settings: Settings
) -> list[Rollout]:
    """Return the trajectories of a group, each as complete as it is in the store."""
    root = recorded.get(Rollout(task=task, index=indices.start, attempt=0).trajectory_id)
    if settings.tree_size is not None and root is not None:
        indices = indices[: root.extra.get("num_paths")]
    return [_latest(task, index, recorded, settings) for index in indices]


def _tree(group: Sequence[Rollout], due: Sequence[Rollout]) -> list[Rollout]:
    """Return what stands for a tree: its first trajectory, if it is to be played."""
    if due and len(due) < len(group):
        complete = ", ".join(rollout.trajectory_id for rollout in group if rollout not in due)
        raise InputError(
            f"a tree must be in the store as a whole: {complete} are, but {due[0].trajectory_id} "
            f"of the same tree is not. {_WHAT_TO_DO}"
        )
    return list(due[:1])


def _latest(
    task: Task, index: int, recorded: Mapping[str, _Recorded], settings: Settings
) -> Rollout:
    """Return a trajectory as it is complete in the store, or as it is to be played next."""
    rollout = Rollout(task=task, index=index, attempt=0)
    while (found := recorded.get(rollout.trajectory_id)) is not None:
        if not found.has_first_step:
            raise InputError(
                "a trajectory must have its first step, which says how it was played: "
                f"{rollout.trajectory_id} is in the store without it. {_WHAT_TO_DO}"
            )
        if not settings.are_those_of(found.extra):
            raise OptionError(
                "the rollouts of one group must be played alike: trajectory "
                f"{rollout.trajectory_id} is in the store with {json.dumps(dict(found.extra))}, "
                f"asked for {settings.to_json()}. Give this collection another --run or "
                "--iteration."
            )
        if found.is_complete:
            break
        rollout = replace(rollout, attempt=rollout.attempt + 1)
    return rollout


def _recorded(store: Store, run_id: str, iteration: int) -> dict[str, _Recorded]:
    """Return what the store has of an iteration, by trajectory."""
    columns = ["trajectory_id", "step_index", "reward", "success", "extra"]
    tables = list(read_steps(store, columns=columns, run_id=run_id, iteration=iteration))
    if not tables:
        return {}
    steps = pa.concat_tables(tables)
    extra = steps.filter(pc.field("step_index") == 0)
    extras = dict(zip(extra["trajectory_id"].to_pylist(), extra["extra"].to_pylist(), strict=True))
    sums = steps.group_by("trajectory_id").aggregate([("reward", "sum"), ("success", "count")])
    return {
        row["trajectory_id"]: _Recorded(
            is_complete=row["success_count"] > 0,
            has_first_step=row["trajectory_id"] in extras,
            extra=json.loads(extras.get(row["trajectory_id"]) or "{}"),
            reward=row["reward_sum"],
        )
        for row in sums.to_pylist()
    }
