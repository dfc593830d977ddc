"""Play a tree of trajectories, and record its paths.

A tree is recorded when it has ended, path by path, because each says how many there are. Steps that
a path shares with an earlier one are recorded again, so that each trajectory is whole; its first
step says in `extra` where it comes from: `branched_from` is the trajectory that it leaves, and
steps 0 to `shared_steps` - 1 are that one's. A decision was sampled once, so it is no repetition in
exactly one trajectory.

A tree whose worker died is played again, by the same chance, and recorded from where the store
ends; what the store has of it must have grown as it did.
"""

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.collector.allocation import Allocation
from graphcredit.collector.branching import Path, Walk, grow
from graphcredit.collector.environment import Environment
from graphcredit.collector.episodes import step_columns
from graphcredit.collector.job import Job, Outcome, trajectory_rng
from graphcredit.collector.policies.decision import Decision, Question
from graphcredit.collector.recorder import StepRecorder
from graphcredit.collector.schedule import Rollout
from graphcredit.store import read_steps
from graphcredit.store.errors import InputError


def tree(
    job: Job,
    environment: Environment,
    rollout: Rollout,
    recorder: StepRecorder,
    allocation: Allocation,
) -> Generator[Question, list[Decision], list[Outcome]]:
    """Play the trajectories of one tree, and record those that are not in the store.

    Args:
        job: What all workers know.
        environment: The task.
        rollout: The first trajectory of the tree that is to be recorded.
        recorder: Where to.
        allocation: How many decisions to ask for.

    Returns:
        An outcome for each trajectory that was recorded.

    Raises:
        OptionError: The allocation knows of this iteration, or of later ones.
        InputError: The environment is not deterministic, or the tree has not grown as it did when
            it was first played.
    """
    allocation.check_precedes(job.iteration, job.store.history_path(job.run_id))
    num_earlier = len(rollout.earlier)
    root = replace(rollout, index=rollout.index - num_earlier, attempt=0)
    paths = yield from grow(
        Walk(environment, rollout.task.task_id),
        allocation,
        trajectory_rng(job.settings.seed, job.iteration, root),
        max_steps=job.settings.max_steps,
    )
    _check_regrown(job, rollout, paths)
    later = [
        replace(root, index=root.index + number).trajectory_id
        for number in range(num_earlier + 1, len(paths))
    ]
    names = [*rollout.earlier, rollout.trajectory_id, *later]
    for name, path in zip(names[num_earlier:], paths[num_earlier:], strict=True):
        _record(job, recorder, rollout.task.task_id, name, path, _marks(path, names))
    return [
        _outcome(name, path, environment.note)
        for name, path in zip(names[num_earlier:], paths[num_earlier:], strict=True)
    ]


def _check_regrown(job: Job, rollout: Rollout, paths: Sequence[Path]) -> None:
    """Raise InputError unless the trajectories in the store are the first of these paths."""
    recorded = _recorded(job, rollout)
    for name, path in zip(rollout.earlier, paths, strict=False):
        before = [(row["state"], row["action"]) for row in recorded[name]]
        now = [(step.before.state, step.decision.action) for step in path.steps]
        for number, (old, new) in enumerate(zip_longest(before, now, fillvalue="missing")):
            if old != new:
                raise _grown_otherwise(f"step {number} of {name} is {old!s:.200}", f"{new!s:.200}")
        num_paths = json.loads(recorded[name][0]["extra"])["num_paths"]
        if num_paths != len(paths):
            raise _grown_otherwise(f"that of {name} has {num_paths} trajectories", f"{len(paths)}")


def _grown_otherwise(before: str, now: str) -> InputError:
    return InputError(
        f"a tree must grow again as it was: {before} in the store and, played again, {now}. Its "
        "policy, its environment or its history has changed: give this collection another --run or "
        "--iteration."
    )


def _recorded(job: Job, rollout: Rollout) -> dict[str, list[dict[str, Any]]]:
    """Return the steps of each trajectory of a tree that is complete in the store."""
    if not rollout.earlier:
        return {}
    tables = read_steps(
        job.store,
        columns=["trajectory_id", "step_index", "state", "action", "extra"],
        run_id=job.run_id,
        iteration=job.iteration,
        task_id=rollout.task.task_id,
    )
    of_tree = pc.field("trajectory_id").isin(pa.array(rollout.earlier))
    steps = pa.concat_tables(table.filter(of_tree) for table in tables).sort_by("step_index")
    recorded: dict[str, list[dict[str, Any]]] = {name: [] for name in rollout.earlier}
    for row in steps.to_pylist():
        recorded[row["trajectory_id"]].append(row)
    return recorded


def _marks(path: Path, names: Sequence[str]) -> dict[str, Any]:
    marks: dict[str, Any] = {"num_paths": len(names)}
    if path.branched_from is None:
        return marks
    return marks | {"branched_from": names[path.branched_from], "shared_steps": path.num_shared}


def _record(
    job: Job, recorder: StepRecorder, task_id: str, name: str, path: Path, marks: dict[str, Any]
) -> None:
    with recorder.trajectory(task_id=task_id, trajectory_id=name) as trajectory:
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
