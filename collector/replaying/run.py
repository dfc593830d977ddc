"""Replay logged decisions: play on from each with the policy that acted, and record Q - V."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

from graphcredit.collector.collection import default_cache_dir
from graphcredit.collector.environments.registry import environment_kind, with_registered
from graphcredit.collector.options import ReplayOptions
from graphcredit.collector.playing.schedule import Schedule
from graphcredit.collector.policies.language.policy import prepare
from graphcredit.collector.replaying.acting import Player, find_player
from graphcredit.collector.replaying.decisions import (
    Key,
    Outline,
    draw,
    of_tasks,
    read_outlines,
)
from graphcredit.collector.replaying.shards import Writer, replayed
from graphcredit.collector.replaying.values import Playing
from graphcredit.collector.replaying.work import (
    Log,
    Row,
    TrajectoryWork,
    replay_trajectories,
    task_of,
)
from graphcredit.store import AnyStore, open_store
from graphcredit.store.errors import OptionError
from graphcredit.store.files.lock import alone_in
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.workers import check_guarded
from graphcredit.store.workers.pool import WorkerPool


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayReport:
    """What one replay did."""

    run_id: str
    iteration: int
    settings: str
    """Who played on, and how: `settings` of its rows."""
    policy: str
    is_acting_policy: bool | None
    """Whether it is who acted; None if the log does not say."""
    differences: tuple[str, ...]
    """What is different from who acted."""
    num_incomplete: int
    """Trajectories that were left out, because they are not complete."""
    num_decisions: int
    """Decisions asked for."""
    num_already_replayed: int
    """Those that the store had with these settings."""
    num_replayed: int
    """Those that were replayed now."""
    num_failed: int
    """Those that could not be replayed now, because the state was not the logged one again."""
    failures: dict[str, int]
    """Why, and how often."""
    first_failure: str | None
    """Trajectory and step of one of them."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return everything above by name."""
        return asdict(self)


def replay(
    store: AnyStore,
    options: ReplayOptions,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
) -> ReplayReport:
    """Replay decisions of an iteration that the store has no replay of yet, and record them.

    The state of a decision is made again by the actions of its trajectory, and compared with the
    log at every step. From there, and from where the logged action leads, the policy plays to the
    limit of steps, `num_plays` times each. A decision whose state is not the logged one again is
    recorded as a failure, without numbers.

    The result depends on the policy, the seed, the number of plays and the log, and on nothing
    else. The work of a worker that dies is done again by another one, up to three times
    (`store/workers/pool.py`). When a replay is interrupted or killed, the same call goes on.

    Args:
        store: A store, or its path.
        options: Which decisions, and how they are replayed.
        run_id: The run; may be left out if there is one.
        iteration: The iteration; may be left out if the run has one.
        on_progress: Called with the numbers of decisions replayed and asked for.

    Raises:
        InputError: There is nothing to replay, or another process is replaying this iteration.
        OptionError: The log does not say who acted or for how long, or the options contradict it.
        EngineError: The work at a trajectory was lost with four workers.
        MissingDependencyError: The library of an environment is not installed.
    """
    started = time.perf_counter()
    check_guarded()
    opened = open_store(store)
    run, number = opened.one_iteration(run_id, iteration)
    log = Log(store=opened, run_id=run, iteration=number)
    everything, num_incomplete = read_outlines(opened, run, number)
    outlines = of_tasks(everything, options.task)
    player = find_player((each.marks for each in outlines), _environments(outlines), options)
    settings = _settings(player, options)
    drawn = draw(outlines, options.num_decisions or None, options.seed)
    directory = opened.replay_dir(run, number)
    done = _Done(total=len(drawn), on_progress=on_progress)
    with alone_in(directory, "one process at a time may replay an iteration"):
        there = replayed(directory, settings)
        due = [key for key in drawn if key not in there]
        done.num_already = len(drawn) - len(due)
        writer = Writer(
            directory,
            {
                "settings": settings,
                "policy": player.policy.name,
                "is_acting_policy": player.is_acting,
            },
        )
        _run(log, _playing(player, options), _works(outlines, due), options, writer, done)
    return ReplayReport(
        run_id=run,
        iteration=number,
        settings=settings,
        policy=player.policy.name,
        is_acting_policy=player.is_acting,
        differences=player.differences,
        num_incomplete=num_incomplete,
        num_decisions=len(drawn),
        num_already_replayed=done.num_already,
        num_replayed=done.num_replayed,
        num_failed=sum(done.failures.values()),
        failures=dict(done.failures.most_common()),
        first_failure=done.first_failure,
        seconds=time.perf_counter() - started,
    )


class _Done:
    """What a replay has done so far."""

    def __init__(self, total: int, on_progress: OnProgress) -> None:
        self.num_already = 0
        self.num_replayed = 0
        self.failures: Counter[str] = Counter()
        self.first_failure: str | None = None
        self._total = total
        self._on_progress = on_progress

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            failure = row.get("failure")
            if failure is None:
                self.num_replayed += 1
                continue
            # Failures differ in the number of the step; what is counted is their kind.
            self.failures[str(failure).partition(": ")[2] or str(failure)] += 1
            self.first_failure = (
                self.first_failure or f"step {row['step_index']} of {row['trajectory_id']}"
            )
        at = self.num_already + self.num_replayed + sum(self.failures.values())
        self._on_progress("replay", at, self._total)


def _run(
    log: Log,
    playing: Playing,
    works: Sequence[TrajectoryWork],
    options: ReplayOptions,
    writer: Writer,
    done: _Done,
) -> None:
    """Replay; whatever happens, what was replayed is written."""
    if works:
        prepare(playing.policy)
    pool = WorkerPool(
        work=with_registered(
            {task.environment for work in works if (task := task_of(work.task_id)) is not None},
            partial(replay_trajectories, log, playing),
        ),
        num_workers=min(options.workers, len(works)),
    )
    schedule = Schedule(works, lambda work: work.task_id)
    try:
        with closing(pool.answers(schedule.next_piece)) as answers:
            for _, rows in answers:
                writer.add(rows)
                done.add(rows)
    finally:
        writer.flush()


def _environments(outlines: Iterable[Outline]) -> set[str]:
    """Return the environments of the tasks; a library that is missing is named here."""
    tasks = [task_of(task_id) for task_id in {each.task_id for each in outlines}]
    names = {task.environment for task in tasks if task is not None}
    if not names:
        example = next(iter(outlines)).task_id
        raise OptionError(
            "a replay needs tasks that this program can play, as `graphcredit collect` names them "
            f"(textworld-…, sokoban-…): the log has tasks such as {example!r}"
        )
    for name in names:
        environment_kind(name)
    return names


def _settings(player: Player, options: ReplayOptions) -> str:
    """Return what must be equal in all rows of one replay, as JSON."""
    return json.dumps(
        {
            "policy": player.policy.name,
            **player.policy.settings,
            "num_plays": options.num_plays,
            "max_steps": player.max_steps,
            "seed": options.seed,
        },
        sort_keys=True,
    )


def _playing(player: Player, options: ReplayOptions) -> Playing:
    return Playing(
        policy=player.policy,
        num_plays=options.num_plays,
        max_steps=player.max_steps,
        seed=options.seed,
        concurrency=options.concurrency or player.policy.concurrency,
        cache_dir=options.games_dir or default_cache_dir(),
    )


def _works(outlines: Iterable[Outline], due: Iterable[Key]) -> list[TrajectoryWork]:
    """Return the work task by task, the tasks in random order: what is done first is no choice."""
    tasks = {each.trajectory_id: each.task_id for each in outlines}
    steps: dict[str, list[int]] = {}
    for name, index in sorted(due):
        steps.setdefault(name, []).append(index)
    return [
        TrajectoryWork(task_id=tasks[name], trajectory_id=name, steps=tuple(steps[name]))
        for name in sorted(steps, key=lambda name: blake2b(tasks[name].encode()).digest())
    ]
