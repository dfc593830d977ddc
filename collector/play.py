"""Play one trajectory, and record it as it happens."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from graphcredit.collector.environment import Environment, Observation, Task, Transition
from graphcredit.collector.environments.table import environment_kind
from graphcredit.collector.policies.table import Policy
from graphcredit.collector.recorder import StepRecorder
from graphcredit.collector.schedule import Rollout, Settings
from graphcredit.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What all workers of a collection know."""

    store: Store
    """The store."""
    run_id: str
    """The run to record."""
    iteration: int
    """The iteration to record."""
    policy: Policy
    """Who plays."""
    settings: Settings
    """How it plays."""
    cache_dir: Path
    """Where generated games are kept."""

    def open(self, task: Task) -> Environment:
        """Open the environment of a task."""
        with_oracle = self.settings.oracle or self.policy.needs_oracle
        kind = environment_kind(task.environment)
        return kind.open(task.spec, self.cache_dir, with_oracle)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a rollout ended."""

    num_steps: int
    """Its length."""
    success: bool
    """Whether the task was accomplished."""
    truncated: bool
    """Whether the limit ended it."""
    note: str | None
    """What a report should say about how its task was made."""


def play_each(job: Job, rollouts: Iterator[Rollout], recorder: StepRecorder) -> Iterator[Outcome]:
    """Play rollouts as they are drawn; an environment stays open while its task goes on."""
    rollout = next(rollouts, None)
    while rollout is not None:
        task = rollout.task
        with closing(job.open(task)) as environment:
            while rollout is not None and rollout.task == task:
                yield play(job, environment, rollout, recorder)
                rollout = next(rollouts, None)


def play(job: Job, environment: Environment, rollout: Rollout, recorder: StepRecorder) -> Outcome:
    """Play one trajectory from its first observation to its end."""
    rng = trajectory_rng(job.settings.seed, job.iteration, rollout)
    task_id, trajectory_id = rollout.task.task_id, rollout.trajectory_id
    before = environment.reset()
    with recorder.trajectory(task_id=task_id, trajectory_id=trajectory_id) as trajectory:
        num_steps = 0
        while True:
            num_steps += 1
            decision = job.policy.act(before, rng)
            done = environment.step(decision.action)
            truncated = num_steps == job.settings.max_steps and not done.terminated
            trajectory.log(
                **_columns(job, before, done),
                action=decision.action,
                thought=decision.thought,
                truncated=truncated,
                success=done.success if done.terminated or truncated else None,
                extra=job.settings.to_json() if num_steps == 1 else None,
            )
            if done.terminated or truncated:
                return Outcome(
                    num_steps=num_steps,
                    success=done.success,
                    truncated=truncated,
                    note=environment.note,
                )
            before = done.observation


def _columns(job: Job, before: Observation, done: Transition) -> dict[str, Any]:
    """Return the columns of a step that the environment decides."""
    after = done.observation
    with_oracle = job.settings.oracle
    return {
        "state": before.state,
        "next_state": after.state,
        "observation": None if before.text == before.state else before.text,
        "admissible_actions": before.admissible_actions,
        "is_action_valid": done.is_action_valid,
        "reward": done.reward,
        "cost": done.cost,
        "oracle_distance": before.oracle_distance if with_oracle else None,
        "next_oracle_distance": after.oracle_distance if with_oracle else None,
        "terminated": done.terminated,
        "policy_version": job.policy.name,
    }


def trajectory_rng(seed: int, iteration: int, rollout: Rollout) -> random.Random:
    """Return the randomness of one trajectory.

    It does not depend on the run, the attempt, the worker, or on what else is played.
    """
    key = f"{seed}/{iteration}/{rollout.task.task_id}/{rollout.index}"
    return random.Random(int.from_bytes(blake2b(key.encode(), digest_size=16).digest()))
