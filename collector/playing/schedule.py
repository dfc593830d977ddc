"""What there is to play, and who plays it."""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphcredit.collector.environments.base import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What decides how a task is played; recorded in `extra` of each trajectory's first step."""

    policy: str
    """Name of the policy, for example `oracle:0.3`."""
    seed: int
    """Seed of the rollouts."""
    max_steps: int
    """Steps after which a trajectory is truncated."""
    oracle: bool
    """Whether distances to the goal are recorded."""
    tree_size: int | None = None
    """Most trajectories of a tree; None where each is played for itself."""
    template: str | None = None
    """Fingerprint of the template of a language model's prompts; None for other policies."""
    temperature: float | None = None
    """Of sampling; None where nothing is sampled."""
    max_new_tokens: int | None = None
    """Where an answer is cut off; None where nothing is sampled."""
    engine: str | None = None
    """What ran a language model, for example `hf`; None for other policies."""
    weights: str | None = None
    """Digest of a language model; its name may come to stand for another. None for others."""
    tokenizer: str | None = None
    """Digest of what decides its tokens; None for other policies."""
    dtype: str | None = None
    """What a language model computes in, float32 or bfloat16; None for other policies."""

    def to_json(self, **marks: Any) -> str:
        """Return the JSON object that is recorded: what is set, then what else there is to say."""
        return json.dumps({**self._set(), **marks})

    def are_those_of(self, extra: Mapping[str, Any]) -> bool:
        """Return whether a trajectory with this `extra` was played alike, as far as that says."""
        recorded = {name: extra[name] for name in asdict(self) if name in extra}
        unsaid = _ADDED - recorded.keys()
        return recorded == {k: v for k, v in self._set().items() if k not in unsaid}

    def _set(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


_ADDED = frozenset({"engine", "weights", "tokenizer", "dtype"})
"""Settings that were not recorded at first: where they are missing, they may be any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """One trajectory to play."""

    task: Task
    """What to play."""
    index: int
    """Number within the group, from 0; with the seed, it decides every action."""
    attempt: int
    """How many incomplete trajectories of this index the store has already."""

    @property
    def trajectory_id(self) -> str:
        """`<task>:<index>`, and `.<attempt>` after the first attempt."""
        attempt = f".{self.attempt}" if self.attempt else ""
        return f"{self.task.task_id}:{self.index}{attempt}"


class Schedule:
    """Hands out rollouts so that a worker stays with a task, and none is idle at the end."""

    def __init__(self, rollouts: Sequence[Rollout]) -> None:
        """Take the rollouts; those of one task are handed out in this order."""
        self._fresh: deque[str] = deque()
        self._queues: dict[str, deque[Rollout]] = {}
        for rollout in rollouts:
            task_id = rollout.task.task_id
            if task_id not in self._queues:
                self._fresh.append(task_id)
            self._queues.setdefault(task_id, deque()).append(rollout)

    def next_rollout(self, after: Rollout | None) -> Rollout | None:
        """Return the next rollout for a worker, or None when all are handed out.

        Args:
            after: What the worker played last. Its task goes on; then comes a task that nobody has
                begun; then whatever task has most left.
        """
        queue = self._queues[after.task.task_id] if after is not None else None
        if not queue and self._fresh:
            queue = self._queues[self._fresh.popleft()]
        if not queue:
            queue = max(self._queues.values(), key=len, default=None)
        return queue.popleft() if queue else None
