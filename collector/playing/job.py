"""The job that worker processes play, and the outcome of a trajectory."""

import random
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from graphcredit.collector.environments.base import Environment, Task
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.playing.branching.allocation import Allocation
from graphcredit.collector.playing.schedule import Rollout, Settings
from graphcredit.collector.policies.base import Policy
from graphcredit.collector.task_locks import Claim
from graphcredit.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The part of a collection that is the same for all workers."""

    store: Store
    run_id: str
    iteration: int
    policy: Policy
    settings: Settings
    """The settings that are recorded with each trajectory."""
    cache_dir: Path
    """Folder of generated games."""
    concurrency: int = 1
    """Trajectories, or trees, that a process plays at a time."""
    allocation: Allocation | None = None
    """Number of decisions to sample at each state; None to play independent trajectories."""
    claim: Claim | None = None
    """Locks on the tasks, held while any process has this job."""

    @property
    def with_oracle(self) -> bool:
        """Whether observations must include a winning plan."""
        return self.settings.oracle or self.policy.needs_oracle

    def open(self, task: Task) -> Environment:
        """Open the environment of a task."""
        kind = environment_kind(task.environment)
        return kind.open(task.spec, self.cache_dir, self.with_oracle)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The outcome of a trajectory."""

    trajectory_id: str
    num_steps: int
    success: bool
    truncated: bool
    """Whether the step limit ended it."""
    note: str | None
    """A remark for the report about how its task was generated, or None."""
    failure: str | None = None
    """Why it could not be played, or not to its end; None if it was."""


def trajectory_rng(seed: int, iteration: int, rollout: Rollout) -> random.Random:
    """Return the random number generator of one trajectory.

    Its seed does not depend on the run, the attempt, the worker or other trajectories.
    """
    key = f"{seed}/{iteration}/{rollout.task.task_id}/{rollout.index}"
    return random.Random(int.from_bytes(blake2b(key.encode(), digest_size=16).digest()))
