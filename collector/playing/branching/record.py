"""Play a tree of trajectories, and record its paths.

A tree is recorded when it has ended, because each path records the number of paths. Steps that a
path shares with an earlier one are recorded again, so that each trajectory is complete. `extra` of
its first step says where they come from: `branched_from` is the trajectory that the path leaves,
and its steps 0 to `shared_steps` - 1 are copies of that trajectory's. Each sampled decision is
thus an original, not a copy, in exactly one trajectory.

All paths are recorded at once. After a partial write, the missing paths could only be had by
sampling the same tree again, and not every engine samples the same tokens in another batch.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from graphcredit.collector.environments.base import Environment
from graphcredit.collector.playing.branching.allocation import Allocation
from graphcredit.collector.playing.branching.tree import Path, Walk, grow
from graphcredit.collector.playing.episode import step_columns
from graphcredit.collector.playing.job import Job, Outcome, trajectory_rng
from graphcredit.collector.playing.schedule import Rollout
from graphcredit.collector.policies.base import Decision, DecisionRequest
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.collector.recording.trajectory import Together


def tree(
    job: Job,
    environment: Environment,
    rollout: Rollout,
    recorder: StepRecorder,
    allocation: Allocation,
) -> Generator[DecisionRequest, list[Decision], list[Outcome]]:
    """Play the trajectories of one tree, and record them.

    Returns:
        An outcome for each trajectory.
    """
    allocation.check_precedes(job.iteration, job.store.history_path(job.run_id))
    paths = yield from grow(
        Walk(environment, rollout.task.task_id),
        allocation,
        trajectory_rng(job.settings.seed, job.iteration, rollout),
        max_steps=job.settings.max_steps,
    )
    later = [
        replace(rollout, index=rollout.index + number, attempt=0).trajectory_id
        for number in range(1, len(paths))
    ]
    names = [rollout.trajectory_id, *later]
    with recorder.together() as group:
        for name, path in zip(names, paths, strict=True):
            _record(job, group, rollout.task.task_id, name, path, _marks(path, names))
    return [_outcome(name, path, environment.note) for name, path in zip(names, paths, strict=True)]


def _marks(path: Path, names: Sequence[str]) -> dict[str, Any]:
    marks: dict[str, Any] = {"num_paths": len(names)}
    if path.branched_from is None:
        return marks
    return marks | {"branched_from": names[path.branched_from], "shared_steps": path.num_shared}


def _record(
    job: Job, group: Together, task_id: str, name: str, path: Path, marks: dict[str, Any]
) -> None:
    with group.trajectory(task_id=task_id, trajectory_id=name) as trajectory:
        for number, step in enumerate(path.steps, start=1):
            is_last = number == len(path.steps)
            trajectory.log(
                **step_columns(job, step.before, step.decision, step.done),
                truncated=is_last and not step.done.terminated,
                success=step.done.success if is_last else None,
                extra=job.settings.to_json(**marks) if number == 1 else None,
            )


def _outcome(name: str, path: Path, note: str | None) -> Outcome:
    last = path.steps[-1].done
    return Outcome(
        trajectory_id=name,
        num_steps=len(path.steps),
        success=last.success,
        truncated=not last.terminated,
        note=note,
    )
