"""Replay the decisions of one task."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import all_environments
from graphcredit.collector.policies.language.policy import forget
from graphcredit.collector.replaying.decisions import LoggedStep, read_trajectories
from graphcredit.collector.replaying.retrace import Place, retrace
from graphcredit.collector.replaying.values import Difference, Playing, Value, Values
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
class TaskWork:
    """The decisions to replay of one task."""

    task_id: str
    decisions: Mapping[str, Sequence[int]]
    """Trajectory to the steps to replay, ascending."""


def task_of(task_id: str) -> Task | None:
    """Return the task that was recorded under an id; None if no environment has such ids."""
    name, _, spec = task_id.partition("-")
    return Task(environment=name, spec=spec) if name in all_environments() else None


def replay_task(
    log: Log, playing: Playing, work: TaskWork, environments: Environments
) -> Iterator[list[Row]]:
    """Replay the decisions of a task; yield the rows of each trajectory when they are done."""
    logged = read_trajectories(log.store, log.run_id, log.iteration, work.task_id, work.decisions)
    task = task_of(work.task_id)
    problem = "no environment of this program has such a task" if task is None else None
    values = None
    if task is not None:
        values = Values(playing, task, environments)
        try:
            values.enter().close()
        except InputError as error:
            problem = f"the task cannot be opened: {error}"
    try:
        for name, indices in work.decisions.items():
            steps = logged.get(name, [])
            if values is None or problem is not None:
                yield [_failed(work, name, steps, at, playing, problem or "") for at in indices]
            else:
                yield _replay_trajectory(values, playing, work, name, steps, indices)
    finally:
        forget()


def _replay_trajectory(
    values: Values,
    playing: Playing,
    work: TaskWork,
    name: str,
    steps: Sequence[LoggedStep],
    indices: Sequence[int],
) -> list[Row]:
    if len(steps) > playing.max_steps:
        why = f"its trajectory has {len(steps)} steps, above the limit of {playing.max_steps}"
        return [_failed(work, name, steps, at, playing, why) for at in indices]
    with closing(values.enter()) as environment:
        places, problem = retrace(environment, steps, max(indices))
    pairs = {at: (places[at], places[at + 1]) for at in indices if at + 1 < len(places)}
    asked = [place for pair in pairs.values() for place in pair if not values.is_known(place)]
    known = values.of(asked)
    rows: list[Row] = []
    for at in indices:
        if at in pairs:
            difference = _difference(values, known, *pairs[at])
            rows.append(_row(work, name, steps, at, playing) | _numbers(difference, steps[at]))
        else:
            rows.append(_failed(work, name, steps, at, playing, problem or ""))
    return rows


def _difference(
    values: Values, known: Mapping[bytes, Value], before: Place, reached: Place
) -> Difference:
    is_exact = values.is_known(reached)
    outcome = Value(num_plays=1, num_wins=int(reached.success))
    return Difference(
        q=outcome if is_exact else known[reached.key], v=known[before.key], is_q_exact=is_exact
    )


def _row(work: TaskWork, name: str, steps: Sequence[LoggedStep], at: int, playing: Playing) -> Row:
    return {
        "task_id": work.task_id,
        "trajectory_id": name,
        "step_index": at,
        "action": steps[at].action,
        "steps_left": max(playing.max_steps - at, 1),
    }


def _numbers(difference: Difference, step: LoggedStep) -> Row:
    first = difference.v.first_actions
    return {
        "q": difference.q.share,
        "q_plays": difference.q.num_plays,
        "v": difference.v.share,
        "v_plays": difference.v.num_plays,
        "v_actions": len(set(first)),
        "v_repeats": first.count(step.action),
        "advantage": difference.advantage,
        "advantage_se": difference.error,
    }


def _failed(
    work: TaskWork,
    name: str,
    steps: Sequence[LoggedStep],
    at: int,
    playing: Playing,
    problem: str,
) -> Row:
    return _row(work, name, steps, at, playing) | {"failure": problem}
