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
from graphcredit.store.schema import ROUNDING

_WHAT_TO_DO = (
    "If `graphcredit check STORE --quarantine` has moved it, repair its shard and move it back "
    "from quarantine/; or give this collection another --run or --iteration."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """The rollouts to play, and the number of those that are complete."""

    rollouts: list[Rollout]
    """The rollouts to play, task by task; for a tree, its first trajectory."""
    num_complete: int
    """Number of trajectories that the store has already."""
    num_resampled: int
    """Number of tasks that are sampled again, because all their returns so far are equal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recorded:
    """A trajectory of the store."""

    is_complete: bool
    has_first_step: bool
    extra: Mapping[str, Any]
    """`extra` of its first step; empty if none was recorded."""
    reward: float
    """Sum of the rewards of its steps."""


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
    """Return the rollouts that are not complete in the store, task by task.

    A task is sampled a group at a time. The next group is due when the earlier ones are complete
    and all trajectories of the task have the same return: nothing can be learnt from them until one
    differs. There is no next group after a tree of one path: at none of its states was a second
    decision worth sampling. Source: dynamic sampling, DAPO.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        tasks: The tasks to play.
        group_size: Trajectories of a group; for a tree, the most it may have.
        settings: The settings of the policy.
        num_resamples: Groups that a task may have after its first.

    Raises:
        OptionError: The store has trajectories of these tasks that were played with other settings.
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
    rounding = ROUNDING * max(map(abs, returns))
    return any(abs(each - returns[0]) > rounding for each in returns)


def _group(
    task: Task, indices: range, recorded: Mapping[str, _Recorded], settings: Settings
) -> list[Rollout]:
    """Return the rollouts of a group: for each index, the complete one, or the one to play next."""
    root = recorded.get(Rollout(task=task, index=indices.start, attempt=0).trajectory_id)
    if settings.tree_size is not None and root is not None:
        indices = indices[: root.extra.get("num_paths")]
    return [_latest(task, index, recorded, settings) for index in indices]


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
                "a trajectory must have its first step, which records its settings: "
                f"{rollout.trajectory_id} is in the store without it. {_WHAT_TO_DO}"
            )
        if not settings.are_those_of(found.extra):
            raise OptionError(
                "the rollouts of one group must be played with the same settings: trajectory "
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
