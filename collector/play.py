"""Play rollouts as they are drawn."""

from collections.abc import Generator, Iterator

from graphcredit.collector.episodes import drive, episode
from graphcredit.collector.job import Job, Outcome
from graphcredit.collector.recorder import StepRecorder
from graphcredit.collector.schedule import Rollout


def play_each(job: Job, rollouts: Iterator[Rollout], recorder: StepRecorder) -> Generator[Outcome]:
    """Play rollouts as they are drawn, `job.concurrency` at a time."""
    plays = (episode(job, job.open(rollout.task), rollout, recorder) for rollout in rollouts)
    yield from drive(plays, job.policy, job.concurrency)
