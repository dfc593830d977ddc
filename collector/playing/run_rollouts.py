"""Play rollouts in this process: one after the other, or several at a time."""

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial

from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.playing.branching.record import tree
from graphcredit.collector.playing.episode import drive, episode
from graphcredit.collector.playing.job import Job, Outcome
from graphcredit.collector.playing.schedule import Rollout, Schedule
from graphcredit.collector.policies.base import Decision, DecisionRequest
from graphcredit.collector.policies.language.policy import forget
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.store.errors import UnplayableError


def play_each(
    job: Job, rollouts: Iterator[Rollout], recorder: StepRecorder, environments: Environments
) -> Generator[list[Outcome]]:
    """Play rollouts, `job.concurrency` at a time; the iterator is drawn from when one ends.

    Yields:
        The outcomes of each rollout: one, or those of a tree. The first has the rollout's id. A
        task that cannot be played ends its rollouts alone.
    """
    plays = (_play(job, rollout, recorder, environments) for rollout in rollouts)
    try:
        yield from drive(plays, job.policy, job.concurrency)
    finally:
        forget()


def play_here(
    job: Job, schedule: Schedule, worker_id: str, environments: Environments
) -> Generator[list[Outcome]]:
    """Play a schedule in this process.

    Args:
        job: The job.
        schedule: The rollouts to play.
        worker_id: Name of this process in the store.
        environments: The environments to play in.
    """
    with StepRecorder(
        job.store, run_id=job.run_id, iteration=job.iteration, worker_id=worker_id
    ) as recorder:
        yield from play_each(job, _drawn(schedule), recorder, environments)


def _drawn(schedule: Schedule) -> Iterator[Rollout]:
    rollout = None
    while (rollout := schedule.next_rollout(rollout)) is not None:
        yield rollout


def _play(
    job: Job, rollout: Rollout, recorder: StepRecorder, environments: Environments
) -> Generator[DecisionRequest, list[Decision], list[Outcome]]:
    key = (rollout.task, job.cache_dir, job.with_oracle)
    try:
        with closing(environments.enter(key, partial(job.open, rollout.task))) as environment:
            if job.allocation is None:
                return [(yield from episode(job, environment, rollout, recorder))]
            return (yield from tree(job, environment, rollout, recorder, job.allocation))
    except UnplayableError as error:
        return [_failed(rollout, str(error))]


def _failed(rollout: Rollout, why: str) -> Outcome:
    return Outcome(
        trajectory_id=rollout.trajectory_id,
        num_steps=0,
        success=False,
        truncated=False,
        note=None,
        failure=f"{rollout.task.task_id}: {why}",
    )
