"""Collect groups of trajectories: every task is played several times, from the same start."""

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.playing.branching.allocation import Allocation
from graphcredit.collector.playing.job import Job, Outcome
from graphcredit.collector.playing.processes import play_all
from graphcredit.collector.playing.resume import Missing, missing_rollouts
from graphcredit.collector.playing.run_rollouts import play_here
from graphcredit.collector.playing.schedule import Schedule, Settings
from graphcredit.collector.policies.registry import LanguageOptions, parse_policy
from graphcredit.collector.recording.recovery import recover_spools
from graphcredit.collector.task_locks import claimed
from graphcredit.store import Store, create_store
from graphcredit.store.errors import OptionError
from graphcredit.store.parquet.er_graph import merge_er_graph


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectReport:
    """What one collection played."""

    num_tasks: int
    """Tasks asked for."""
    num_already_complete: int
    """Trajectories asked for that were in the store."""
    num_resampled: int
    """Groups sampled because those of their task before were degenerate."""
    num_recovered_steps: int
    """Steps of earlier workers that were found in spools and are in shards now."""
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
    """What is to be known about how tasks were made."""
    casualties: tuple[str, ...]
    """A line for each worker that died. What it was playing is left for the next collection."""

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
    *,
    tasks: Sequence[Task],
    policy: str,
    group_size: int = 8,
    max_steps: int = 30,
    seed: int = 0,
    num_workers: int = 2,
    run_id: str = "r0",
    iteration: int = 0,
    allocation: str | None = None,
    num_resamples: int = 0,
    template: str | None = None,
    temperature: float = 1.0,
    max_new_tokens: int = 512,
    dtype: str = "auto",
    concurrency: int | None = None,
    environments: Environments | None = None,
    record_oracle: bool = False,
    cache_dir: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> CollectReport:
    """Play what is not complete in the store yet, and record it.

    Of tasks that are about entities, the entity-relation graph is recorded as well.

    The actions of a trajectory depend on the policy, the seed, the iteration, the task and its
    number in the group, and on nothing else. Workers are spawned, so a script that calls this must
    do so under `if __name__ == "__main__":`. Ctrl-C raises KeyboardInterrupt after every worker has
    finished its trajectory; calling this again goes on.

    Others may collect into the store at the same time. One that has some of these tasks in the same
    iteration is waited for, which is said on stderr; workers that outlive their parent are, too.

    Args:
        store: A store, or its path; made where there is none.
        tasks: What to play; `list_tasks` of an environment names some.
        policy: `random`, `oracle:EPSILON`, or a language model: `hf:PATH` and `vllm:PATH` play,
            `tutor:PATH` plays at random in the model's tokens.
        group_size: Trajectories per task.
        max_steps: Steps after which a trajectory is truncated.
        seed: Decides all chance, with the iteration, the task and the number in the group.
        num_workers: Processes; fewer are started when there is less to play. 0 plays in this one,
            which keeps a model in memory from one call to the next.
        run_id: The run to record.
        iteration: The iteration to record.
        allocation: `spo3` plays a tree for each group, which branches where `history/` says that a
            state is unresolved; by default every trajectory is played for itself.
        num_resamples: Groups that a task may have after its first, one at a time, while all its
            trajectories have the same return.
        template: How a language model is told its situation: a name or a path; by default the one
            that is called like the environment of the tasks, if they have but one.
        temperature: Of a language model; 0 takes the most probable token.
        max_new_tokens: Where an answer of a language model is cut off.
        dtype: What a language model computes in: float32, bfloat16, or auto, which is bfloat16 on a
            GPU and float32 elsewhere.
        concurrency: Trajectories that a process plays at a time; by default as many as suit the
            policy. It decides nothing but the speed.
        environments: Where this process plays, with `num_workers` 0: what was seen in them is known
            to the next call too. By default new ones.
        record_oracle: Whether to record the true remaining plan length, at half the speed.
        cache_dir: Where generated games are kept; `default_cache_dir()` by default.
        on_progress: Called with the numbers of trajectories complete and asked for.

    Raises:
        OptionError: An option is out of range, or the store has trajectories of these tasks that
            were played otherwise.
        MissingDependencyError: The library of an environment is not installed.
    """
    started = time.perf_counter()
    _check_at_least(1, group_size=group_size, max_steps=max_steps)
    _check_at_least(0, num_resamples=num_resamples, num_workers=num_workers)
    _check_at_least(1, concurrency=1 if concurrency is None else concurrency)
    if environments is not None and num_workers:
        raise OptionError(f"num_workers must be 0 to play in given environments: got {num_workers}")
    if allocation not in (None, "spo3"):
        raise OptionError(f"allocation must be spo3, or not given: got {allocation!r}")
    _check_tasks(tasks)
    options = LanguageOptions(
        template=template or next((task.environment for task in tasks), ""),
        temperature=temperature,
        max_new_tokens=max_new_tokens,
        dtype=dtype,
    )
    chosen = parse_policy(policy, options)
    played_with = chosen.settings
    if not template and "template" in played_with:
        _check_one_environment(tasks)
    opened = store if isinstance(store, Store) else create_store(store)
    task_ids = [task.task_id for task in tasks]
    job = Job(
        store=opened,
        run_id=run_id,
        iteration=iteration,
        policy=chosen,
        settings=Settings(
            policy=chosen.name,
            seed=seed,
            max_steps=max_steps,
            oracle=record_oracle,
            tree_size=None if allocation is None else group_size,
            **played_with,
        ),
        cache_dir=cache_dir or default_cache_dir(),
        concurrency=concurrency or chosen.concurrency,
        allocation=None
        if allocation is None
        else Allocation.read(
            opened,
            run_id=run_id,
            task_ids=task_ids,
            tree_size=group_size,
        ),
    )
    outcomes: list[Outcome] = []
    casualties: list[str] = []
    passes: list[Missing] = []
    with claimed(opened, run_id=run_id, iteration=iteration, task_ids=task_ids) as claim:
        job = replace(job, claim=claim)
        recovered = recover_spools(opened)
        _record_entities(opened, tasks)
        for _ in range(1 + num_resamples):
            missing = missing_rollouts(
                opened,
                run_id=run_id,
                iteration=iteration,
                tasks=tasks,
                group_size=group_size,
                settings=job.settings,
                num_resamples=num_resamples,
            )
            passes.append(missing)
            if not missing.rollouts:
                break
            outcomes += _play(job, missing, num_workers, casualties, environments, on_progress)
            if casualties:
                recovered += recover_spools(opened)
                break
    return CollectReport(
        num_tasks=len(tasks),
        num_already_complete=passes[0].num_complete,
        num_resampled=sum(missing.num_resampled for missing in passes),
        num_recovered_steps=sum(spool.num_steps for spool in recovered),
        num_trajectories=len(outcomes),
        num_steps=sum(outcome.num_steps for outcome in outcomes),
        num_success=sum(outcome.success for outcome in outcomes),
        num_lost=sum(not (outcome.success or outcome.truncated) for outcome in outcomes),
        num_truncated=sum(outcome.truncated for outcome in outcomes),
        seconds=time.perf_counter() - started,
        notes=tuple(sorted({outcome.note for outcome in outcomes if outcome.note is not None})),
        casualties=tuple(casualties),
    )


def _play(
    job: Job,
    missing: Missing,
    num_workers: int,
    casualties: list[str],
    environments: Environments | None,
    on_progress: Callable[[int, int], None] | None,
) -> list[Outcome]:
    """Play what is missing; a tree counts as all the trajectories it may have."""
    outcomes: list[Outcome] = []
    worth = job.settings.tree_size or 1
    total = missing.num_complete + worth * len(missing.rollouts)
    schedule = Schedule(missing.rollouts)
    num_workers = min(num_workers, len(missing.rollouts))
    with closing(_played(job, schedule, num_workers, casualties, environments)) as played:
        for count, ended in enumerate(played, start=1):
            outcomes += ended
            if on_progress is not None:
                on_progress(missing.num_complete + worth * count, total)
    return outcomes


def _played(
    job: Job,
    schedule: Schedule,
    num_workers: int,
    casualties: list[str],
    environments: Environments | None,
) -> Generator[list[Outcome]]:
    """Play a schedule, in workers or in this process."""
    if num_workers:
        yield from play_all(job, schedule, _new_worker_ids(num_workers), casualties)
    elif environments is not None:
        yield from play_here(job, schedule, _new_worker_ids(1)[0], environments)
    else:
        with closing(Environments()) as own:
            yield from play_here(job, schedule, _new_worker_ids(1)[0], own)


def _record_entities(store: Store, tasks: Sequence[Task]) -> None:
    for name in sorted({task.environment for task in tasks}):
        er_graph_of = environment_kind(name).er_graph
        if er_graph_of is not None:
            merge_er_graph(store, er_graph_of([t for t in tasks if t.environment == name]))


def _new_worker_ids(count: int) -> list[str]:
    """Return names that no other process has: other collections may record into this store."""
    return [f"w{number}-{secrets.token_hex(4)}" for number in range(count)]


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


def _check_at_least(least: int, **options: int) -> None:
    for name, value in options.items():
        if value < least:
            raise OptionError(f"{name} must be {least} or more: got {value}")
