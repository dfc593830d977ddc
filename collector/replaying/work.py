"""Replay the decisions of one task."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import sqrt
from typing import Any

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import all_environments
from graphcredit.collector.policies.language.policy import forget
from graphcredit.collector.replaying.decisions import LoggedStep, read_trajectories
from graphcredit.collector.replaying.retrace import RetracedState, retrace
from graphcredit.collector.replaying.values import Playing, Value, Values
from graphcredit.store import Store
from graphcredit.store.errors import InputError

Row = dict[str, Any]
"""A row of `replay`, but for what all rows of a replay share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """The iteration whose decisions are replayed."""

    store: Store
    run_id: str
    iteration: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryWork:
    """The decisions to replay of one trajectory."""

    task_id: str
    trajectory_id: str
    steps: tuple[int, ...]
    """The steps to replay, ascending."""


def task_of(task_id: str) -> Task | None:
    """Return the task that was recorded under an id; None if no environment has such ids."""
    name, _, spec = task_id.partition("-")
    return Task(environment=name, spec=spec) if name in all_environments() else None


def replay_trajectories(
    log: Log, playing: Playing, works: Iterator[TrajectoryWork]
) -> Generator[tuple[TrajectoryWork, list[Row]]]:
    """Yield the rows of each trajectory's decisions; it is the work of a worker.

    What was learnt in a task is known until the next task, so its trajectories should follow each
    other.
    """
    with closing(Environments()) as environments:
        task: _TaskReplay | None = None
        try:
            for work in works:
                if task is None or task.task_id != work.task_id:
                    forget()
                    task = _TaskReplay(log, playing, work.task_id, environments)
                yield work, task.rows(work)
        finally:
            forget()


class _TaskReplay:
    """The trajectories of a task, and what is known of its values."""

    def __init__(
        self, log: Log, playing: Playing, task_id: str, environments: Environments
    ) -> None:
        self.task_id = task_id
        self._playing = playing
        self._logged = read_trajectories(log.store, log.run_id, log.iteration, task_id)
        self._values: Values | None = None
        self._problem = "no environment of this program has such a task"
        if (task := task_of(task_id)) is not None:
            values = Values(playing, task, environments)
            try:
                values.enter().close()
                self._values = values
            except InputError as error:
                self._problem = f"the task cannot be opened: {error}"

    def rows(self, work: TrajectoryWork) -> list[Row]:
        """Replay decisions of a trajectory."""
        steps = self._logged.get(work.trajectory_id, [])
        most = self._playing.max_steps
        values, problem = self._values, self._problem
        if len(steps) > most:
            values = None
            problem = f"its trajectory has {len(steps)} steps, above the limit of {most}"
        if values is None:
            return [self._row(work, steps, at) | {"failure": problem} for at in work.steps]
        with closing(values.enter()) as environment:
            places, difference = retrace(environment, steps, max(work.steps))
        pairs = {at: (places[at], places[at + 1]) for at in work.steps if at + 1 < len(places)}
        asked = [place for pair in pairs.values() for place in pair if not values.is_known(place)]
        known = values.of(asked)
        return [
            self._row(work, steps, at)
            | (
                _numbers(values, known, *pairs[at], steps[at].action)
                if at in pairs
                else {"failure": difference or ""}
            )
            for at in work.steps
        ]

    def _row(self, work: TrajectoryWork, steps: Sequence[LoggedStep], at: int) -> Row:
        return {
            "task_id": work.task_id,
            "trajectory_id": work.trajectory_id,
            "step_index": at,
            "action": steps[at].action,
            "steps_left": max(self._playing.max_steps - at, 1),
        }


def _numbers(
    values: Values,
    known: Mapping[bytes, Value],
    before: RetracedState,
    reached: RetracedState,
    action: str,
) -> Row:
    """Return Q, V and Q - V; Q has no error where the action ended the episode."""
    v, is_exact = known[before.key], values.is_known(reached)
    q = Value(num_plays=1, num_wins=int(reached.success)) if is_exact else known[reached.key]
    return {
        "q": q.share,
        "q_plays": q.num_plays,
        "v": v.share,
        "v_plays": v.num_plays,
        "v_actions": len(set(v.first_actions)),
        "v_repeats": v.first_actions.count(action),
        "advantage": q.share - v.share,
        "advantage_se": sqrt(v.variance + (0.0 if is_exact else q.variance)),
    }
