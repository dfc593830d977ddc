"""What is left to play, and who plays it."""

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import pyarrow.compute as pc

from graphcredit.collector.environment import Task
from graphcredit.store import Store, read_steps
from graphcredit.store.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What decides how a task is played; recorded in `extra` of each trajectory's first step."""

    policy: str
    """Name of the policy, for example `oracle:0.3`."""
    seed: int
    """Seed of the rollouts."""
    max_steps: int
    """Steps after which a trajectory is truncated."""
    oracle: bool
    """Whether distances to the goal are recorded."""

    def to_json(self) -> str:
        """Return the JSON object that is recorded."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """One trajectory to play."""

    task: Task
    """What to play."""
    index: int
    """Number within the group, from 0; with the seed, it decides every action."""
    attempt: int
    """How many incomplete trajectories of this index the store has already."""

    @property
    def trajectory_id(self) -> str:
        """`<task>:<index>`, and `.<attempt>` after the first attempt."""
        attempt = f".{self.attempt}" if self.attempt else ""
        return f"{self.task.task_id}:{self.index}{attempt}"


def missing_rollouts(
    store: Store,
    *,
    run_id: str,
    iteration: int,
    tasks: Iterable[Task],
    group_size: int,
    settings: Settings,
) -> list[Rollout]:
    """Return the trajectories that are not complete in the store, task by task.

    Raises:
        OptionError: The store has trajectories of these tasks that were played otherwise.
    """
    complete, incomplete = _recorded(store, run_id, iteration)
    missing: list[Rollout] = []
    for task in tasks:
        for index in range(group_size):
            rollout = Rollout(task=task, index=index, attempt=0)
            while rollout.trajectory_id in incomplete:
                _check_same(incomplete[rollout.trajectory_id], settings, rollout)
                rollout = Rollout(task=task, index=index, attempt=rollout.attempt + 1)
            if rollout.trajectory_id not in complete:
                missing.append(rollout)
            else:
                _check_same(complete[rollout.trajectory_id], settings, rollout)
    return missing


class Schedule:
    """Hands out rollouts so that a worker stays with a task, and none is idle at the end."""

    def __init__(self, rollouts: Sequence[Rollout]) -> None:
        """Take the rollouts; those of one task are handed out in this order."""
        self._fresh: deque[str] = deque()
        self._queues: dict[str, deque[Rollout]] = {}
        for rollout in rollouts:
            task_id = rollout.task.task_id
            if task_id not in self._queues:
                self._fresh.append(task_id)
            self._queues.setdefault(task_id, deque()).append(rollout)

    def next_rollout(self, after: Rollout | None) -> Rollout | None:
        """Return the next rollout for a worker, or None when all are handed out.

        Args:
            after: What the worker played last. Its task goes on; then comes a task that nobody has
                begun; then whatever task has most left.
        """
        queue = self._queues[after.task.task_id] if after is not None else None
        if not queue and self._fresh:
            queue = self._queues[self._fresh.popleft()]
        if not queue:
            queue = max(self._queues.values(), key=len, default=None)
        return queue.popleft() if queue else None


def _recorded(
    store: Store, run_id: str, iteration: int
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Return complete and incomplete trajectories of an iteration, with their settings."""
    settings: dict[str, str | None] = {}
    ended: set[str] = set()
    columns = ["trajectory_id", "step_index", "success", "extra"]
    for table in read_steps(store, columns=columns, run_id=run_id, iteration=iteration):
        first = table.filter(pc.field("step_index") == 0)
        ids, extras = first["trajectory_id"].to_pylist(), first["extra"].to_pylist()
        settings |= dict(zip(ids, extras, strict=True))
        ended.update(table.filter(pc.field("success").is_valid())["trajectory_id"].to_pylist())
    complete = {name: value for name, value in settings.items() if name in ended}
    return complete, {name: value for name, value in settings.items() if name not in ended}


def _check_same(recorded: str | None, settings: Settings, rollout: Rollout) -> None:
    if recorded != settings.to_json():
        raise OptionError(
            f"the rollouts of one group must be played alike: trajectory {rollout.trajectory_id} "
            f"is in the store with {recorded}, asked for {settings.to_json()}. "
            "Give this collection another --run or --iteration."
        )
