"""What a process needs to know to play, and what it tells of each trajectory."""

import random
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from graphcredit.collector.environments.base import Environment, Task
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.playing.branching.allocation import Allocation
from graphcredit.collector.playing.schedule import Rollout, Settings
from graphcredit.collector.policies.registry import Policy
from graphcredit.collector.task_locks import Claim
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
    concurrency: int = 1
    """Trajectories, or trees, that a process plays at a time."""
    allocation: Allocation | None = None
    """How many decisions to ask for at a state; None where each trajectory is played for itself."""
    claim: Claim | None = None
    """Keeps other collections from these tasks while any process has it."""

    @property
    def with_oracle(self) -> bool:
        """Whether observations must have a plan to win."""
        return self.settings.oracle or self.policy.needs_oracle

    def open(self, task: Task) -> Environment:
        """Open the environment of a task."""
        kind = environment_kind(task.environment)
        return kind.open(task.spec, self.cache_dir, self.with_oracle)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a rollout ended."""

    trajectory_id: str
    """Which one."""
    num_steps: int
    """Its length."""
    success: bool
    """Whether the task was accomplished."""
    truncated: bool
    """Whether the limit ended it."""
    note: str | None
    """What a report should say about how its task was made."""


def trajectory_rng(seed: int, iteration: int, rollout: Rollout) -> random.Random:
    """Return the randomness of one trajectory.

    It does not depend on the run, the attempt, the worker, or on what else is played.
    """
    key = f"{seed}/{iteration}/{rollout.task.task_id}/{rollout.index}"
    return random.Random(int.from_bytes(blake2b(key.encode(), digest_size=16).digest()))
