"""Play rollouts as they are drawn."""

from collections.abc import Generator, Iterator

from graphcredit.collector.episodes import drive, episode
from graphcredit.collector.job import Job, Outcome
from graphcredit.collector.policies.decision import Decision, Question
from graphcredit.collector.recorder import StepRecorder
from graphcredit.collector.schedule import Rollout
from graphcredit.collector.trees import tree


def play_each(
    job: Job, rollouts: Iterator[Rollout], recorder: StepRecorder
) -> Generator[list[Outcome]]:
    """Play rollouts as they are drawn, `job.concurrency` at a time.

    Yields:
        The outcomes of each: one, or those of a tree.
    """
    plays = (_play(job, rollout, recorder) for rollout in rollouts)
    yield from drive(plays, job.policy, job.concurrency)


def _play(
    job: Job, rollout: Rollout, recorder: StepRecorder
) -> Generator[Question, list[Decision], list[Outcome]]:
    environment = job.open(rollout.task)
    if job.allocation is None:
        return [(yield from episode(job, environment, rollout, recorder))]
    return (yield from tree(job, environment, rollout, recorder, job.allocation))
