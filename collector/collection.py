"""Collect groups of trajectories: every task is played several times, from the same start."""

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import environment_kind, with_registered
from graphcredit.collector.options import CollectOptions
from graphcredit.collector.playing.branching.allocation import Allocation
from graphcredit.collector.playing.job import Job, Outcome
from graphcredit.collector.playing.resume import Missing, missing_rollouts
from graphcredit.collector.playing.run_rollouts import play_rollouts
from graphcredit.collector.playing.schedule import Rollout, Schedule, Settings
from graphcredit.collector.policies.base import Policy
from graphcredit.collector.policies.language.shared import shared
from graphcredit.collector.policies.registry import parse_policy
from graphcredit.collector.recording.recovery import Recovered, recover_spools
from graphcredit.collector.task_locks import claimed
from graphcredit.store import Store, create_store
from graphcredit.store.errors import OptionError
from graphcredit.store.parquet.er_graph import merge_er_graph
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.workers import check_guarded
from graphcredit.store.workers.pool import WorkerPool


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectReport:
    """What one collection played."""

    num_tasks: int
    """Tasks asked for."""
    num_already_complete: int
    """Trajectories asked for that were in the store."""
    num_recovered_steps: int
    """Steps of dead workers, of earlier collections too, that were found in their spools."""
    num_trajectories: int
    """Trajectories played now."""
    num_steps: int
    """Their steps."""
    num_success: int
    """Trajectories played now that accomplished their task."""
    num_lost: int
    """Those that the environment ended without success."""
    num_truncated: int
    """Those that the limit of steps ended."""
    seconds: float
    """Time it took, generation of games and start of workers included."""
    notes: tuple[str, ...]
    """What is to be known about the policy, and about how tasks were made."""
    failures: tuple[str, ...] = ()
    """A line for each task that could not be played, with the reason."""

    @property
    def steps_per_second(self) -> float:
        """Recorded steps per second, over everything."""
        return self.num_steps / self.seconds

    def as_json(self) -> dict[str, Any]:
        """Return everything above by name."""
        return {**asdict(self), "steps_per_second": self.steps_per_second}


def default_cache_dir() -> Path:
    """Return where generated games are kept: `$XDG_CACHE_HOME` or `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "graphcredit" / "games"


def collect(
    store: Store | str | Path,
    tasks: Sequence[Task],
    options: CollectOptions,
    *,
    environments: Environments | None = None,
    on_progress: OnProgress = silent,
) -> CollectReport:
    """Play what is not complete in the store yet, and record it.

    Of tasks that are about entities, the entity-relation graph is recorded as well.

    The actions of a trajectory depend on the policy, the seed, the iteration, the task and its
    number in the group, and on nothing else. Ctrl-C raises KeyboardInterrupt after every worker has
    finished its trajectory; the same call again goes on.

    The finished steps of a worker that dies are kept. What it was playing is played again by
    another one, up to three times (`store/workers/pool.py`), under the id of a further attempt
    where it has steps already.

    Others may collect into the store at the same time. A process that plays some of these tasks in
    the same iteration is waited for, which is said on stderr; so are workers that outlive their
    parent.

    Args:
        store: A store, or its path; made where there is none.
        tasks: What to play; `list_tasks` of an environment names some.
        options: How to play it, and what to record it as.
        environments: Environments of this process, with `workers` 0: what was seen in them is known
            to the next call too. By default new ones.
        on_progress: Called with the numbers of trajectories complete and asked for.

    Raises:
        OptionError: The policy or a task is not right, or the store has trajectories of these tasks
            that were played otherwise.
        EngineError: A rollout was lost with four workers.
        MissingDependencyError: The library of an environment is not installed.
    """
    started = time.perf_counter()
    check_guarded()
    if environments is not None and options.workers:
        raise OptionError(f"workers must be 0 to play in given environments: got {options.workers}")
    _check_tasks(tasks)
    policy = _policy(tasks, options)
    opened = store if isinstance(store, Store) else create_store(store)
    job = _job(opened, tasks, policy, options)
    played = _Played()
    with claimed(
        opened,
        run_id=options.run,
        iteration=options.iteration,
        task_ids=[task.task_id for task in tasks],
    ) as claim:
        job = replace(job, claim=claim)
        played.recovered += recover_spools(opened)
        _record_entities(opened, tasks)
        missing = _missing(job, tasks, options)
        if missing.rollouts:
            _play(job, missing, options, played, environments, on_progress)
    report = played.report(len(tasks), missing.num_complete, time.perf_counter() - started)
    return replace(report, notes=(*policy.notes, *report.notes))


@dataclass(kw_only=True, slots=True)
class _Played:
    """What a collection has done so far."""

    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    recovered: list[Recovered] = field(default_factory=list[Recovered])

    def report(self, num_tasks: int, num_already_complete: int, seconds: float) -> CollectReport:
        outcomes = [outcome for outcome in self.outcomes if outcome.failure is None]
        failures = {o.failure for o in self.outcomes if o.failure is not None}
        notes = {outcome.note for outcome in outcomes if outcome.note is not None}
        return CollectReport(
            num_tasks=num_tasks,
            num_already_complete=num_already_complete,
            num_recovered_steps=sum(spool.num_steps for spool in self.recovered),
            num_trajectories=len(outcomes),
            num_steps=sum(outcome.num_steps for outcome in outcomes),
            num_success=sum(outcome.success for outcome in outcomes),
            num_lost=sum(not (outcome.success or outcome.truncated) for outcome in outcomes),
            num_truncated=sum(outcome.truncated for outcome in outcomes),
            seconds=seconds,
            notes=tuple(sorted(notes)),
            failures=tuple(sorted(failures)),
        )


def _policy(tasks: Sequence[Task], options: CollectOptions) -> Policy:
    """Return the policy; a template that is not given is that of the environment."""
    environment = next((task.environment for task in tasks), "")
    template = options.template or environment
    policy = parse_policy(options.policy, options.changed(template=template))
    if not options.template and "template" in policy.settings:
        _check_one_environment(tasks)
    return policy


def _job(store: Store, tasks: Sequence[Task], policy: Policy, options: CollectOptions) -> Job:
    is_tree = options.allocation is not None
    allocation = None
    if is_tree:
        allocation = Allocation.read(
            store,
            run_id=options.run,
            task_ids=[task.task_id for task in tasks],
            tree_size=options.group_size,
        )
    return Job(
        store=store,
        run_id=options.run,
        iteration=options.iteration,
        policy=policy,
        settings=Settings(
            policy=policy.name,
            seed=options.seed,
            max_steps=options.max_steps,
            oracle=options.oracle,
            tree_size=options.group_size if is_tree else None,
            **policy.settings,
        ),
        cache_dir=options.games_dir or default_cache_dir(),
        concurrency=options.concurrency or policy.concurrency,
        allocation=allocation,
    )


def _missing(job: Job, tasks: Sequence[Task], options: CollectOptions) -> Missing:
    """Return what is to be played still."""
    return missing_rollouts(
        job.store,
        run_id=job.run_id,
        iteration=job.iteration,
        tasks=tasks,
        group_size=options.group_size,
        settings=job.settings,
    )


def _play(
    job: Job,
    missing: Missing,
    options: CollectOptions,
    played: _Played,
    environments: Environments | None,
    on_progress: OnProgress,
) -> None:
    """Play what is missing; a tree counts as all the trajectories it may have."""
    num_workers = min(options.workers, len(missing.rollouts))
    worth = job.settings.tree_size or 1
    total = missing.num_complete + worth * len(missing.rollouts)
    schedule = Schedule(missing.rollouts, lambda rollout: rollout.task.task_id)
    with shared(job.policy, num_workers) as policy:
        if policy is not job.policy:  # the model that all workers share plays so many at a time
            job = replace(job, policy=policy, concurrency=-(-job.concurrency // num_workers))
        pool = WorkerPool(
            work=with_registered(
                {rollout.task.environment for rollout in missing.rollouts},
                partial(play_rollouts, job, environments=environments),
            ),
            num_workers=num_workers,
            pieces_at_once=job.concurrency,
            lets_finish=True,
            descriptors=[] if job.claim is None else [job.claim.file.descriptor],
            retry=lambda lost: _left(job, lost, options, played),
        )
        with closing(pool.answers(schedule.next_piece)) as answers:
            for count, (_, outcomes) in enumerate(answers, start=1):
                played.outcomes += outcomes
                on_progress("collect", missing.num_complete + worth * count, total)


def _left(
    job: Job, lost: Sequence[Rollout], options: CollectOptions, played: _Played
) -> list[Rollout | None]:
    """Save the steps of a dead worker; return what is to be played of its rollouts."""
    played.recovered += recover_spools(job.store)
    tasks = list(dict.fromkeys(rollout.task for rollout in lost))
    due = {(each.task, each.index): each for each in _missing(job, tasks, options).rollouts}
    return [due.get((rollout.task, rollout.index)) for rollout in lost]


def _record_entities(store: Store, tasks: Sequence[Task]) -> None:
    for name in sorted({task.environment for task in tasks}):
        er_graph_of = environment_kind(name).er_graph
        if er_graph_of is not None:
            merge_er_graph(store, er_graph_of([t for t in tasks if t.environment == name]))


def _check_tasks(tasks: Sequence[Task]) -> None:
    for task, count in Counter(tasks).items():
        if count > 1:
            raise OptionError(f"tasks must be different: {task.task_id} is there {count} times")
    for name in {task.environment for task in tasks}:
        environment_kind(name)


def _check_one_environment(tasks: Sequence[Task]) -> None:
    names = sorted({task.environment for task in tasks})
    if len(names) > 1:
        raise OptionError(
            "template must be given where a language model plays tasks of several environments, "
            f"because the default is the one called like the environment: got {', '.join(names)}. "
            "To go on with a collection, give the one that it began with"
        )
