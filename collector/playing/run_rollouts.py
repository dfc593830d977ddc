"""Play rollouts in one process: one after the other, or several at a time."""

import secrets
from collections.abc import Generator, Iterator
from contextlib import closing

from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.collector.playing.branching.record import tree
from graphcredit.collector.playing.episode import drive, episode
from graphcredit.collector.playing.job import Job, Outcome, enter
from graphcredit.collector.playing.schedule import Rollout
from graphcredit.collector.policies.base import Decision, DecisionRequest
from graphcredit.collector.policies.language.policy import forget
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.store.errors import UnplayableError

Played = tuple[Rollout, list[Outcome]]
"""A rollout with its outcomes: one, or those of the trajectories of a tree."""


def play_rollouts(
    job: Job, rollouts: Iterator[Rollout], *, environments: Environments | None = None
) -> Generator[Played]:
    """Play rollouts, `job.concurrency` at a time, and record them; it is the work of a worker.

    A task that cannot be played ends its rollouts alone.

    Args:
        job: What is the same for all rollouts.
        rollouts: The rollouts; the next one is taken when one ends.
        environments: The environments to play in; by default new ones, closed at the end.
    """
    if environments is None:
        with closing(Environments()) as new:
            yield from play_rollouts(job, rollouts, environments=new)
        return
    # No other process has this name: other collections may record into this store.
    worker_id = f"w{secrets.token_hex(5)}"
    with StepRecorder(
        job.store, run_id=job.run_id, iteration=job.iteration, worker_id=worker_id
    ) as recorder:
        plays = (_play(job, rollout, recorder, environments) for rollout in rollouts)
        try:
            yield from drive(plays, job.policy, job.concurrency)
        finally:
            forget()


def _play(
    job: Job, rollout: Rollout, recorder: StepRecorder, environments: Environments
) -> Generator[DecisionRequest, list[Decision], Played]:
    try:
        with closing(
            enter(environments, rollout.task, job.cache_dir, with_oracle=job.with_oracle)
        ) as environment:
            if job.allocation is None:
                return rollout, [(yield from episode(job, environment, rollout, recorder))]
            outcomes = yield from tree(job, environment, rollout, recorder, job.allocation)
            return rollout, outcomes
    except UnplayableError as error:
        return rollout, [_failed(rollout, str(error))]


def _failed(rollout: Rollout, why: str) -> Outcome:
    return Outcome(
        trajectory_id=rollout.trajectory_id,
        num_steps=0,
        success=False,
        truncated=False,
        note=None,
        failure=f"{rollout.task.task_id}: {why}",
    )
