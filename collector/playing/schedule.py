"""The rollouts to play, their settings, and the order in which workers get work."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from graphcredit.collector.environments.base import Task

Piece = TypeVar("Piece")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of a rollout, recorded in `extra` of each trajectory's first step."""

    policy: str
    """Name of the policy, for example `oracle:0.3`."""
    seed: int
    max_steps: int
    """Steps after which a trajectory is truncated."""
    oracle: bool
    """Whether distances to the goal are recorded."""
    tree_size: int | None = None
    """Most trajectories of a tree; None if trajectories are independent."""
    template: str | None = None
    """Fingerprint of the prompt template; None if the policy is not a language model."""
    temperature: float | None = None
    """Sampling temperature; None if nothing is sampled."""
    max_new_tokens: int | None = None
    """Most tokens of an answer; None if nothing is sampled."""
    engine: str | None = None
    """Name of the sampling engine, for example `hf`; None for other policies."""
    weights: str | None = None
    """Digest of the weights, since a name may later stand for other ones; None for other
    policies."""
    tokenizer: str | None = None
    """Digest of the tokenizer's files; None for other policies."""
    dtype: str | None = None
    """Number type of the model's arithmetic, float32 or bfloat16; None for other policies."""

    def to_json(self, **marks: Any) -> str:
        """Return the JSON object to record: the settings that are not None, then the marks."""
        return json.dumps({**self._set(), **marks})

    def are_those_of(self, extra: Mapping[str, Any]) -> bool:
        """Return whether a trajectory with this `extra` was played with these settings."""
        return {name: extra[name] for name in asdict(self) if name in extra} == self._set()

    def _set(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """One trajectory to play."""

    task: Task
    index: int
    """Number within the group, from 0; together with the seed, it determines every action."""
    attempt: int
    """Number of incomplete trajectories of this index in the store."""

    @property
    def trajectory_id(self) -> str:
        """`<task>:<index>`, and `.<attempt>` after the first attempt."""
        attempt = f".{self.attempt}" if self.attempt else ""
        return f"{self.task.task_id}:{self.index}{attempt}"


class Schedule(Generic[Piece]):
    """Hands out work: a worker stays with its task, but no worker is idle at the end."""

    def __init__(self, pieces: Iterable[Piece], task_of: Callable[[Piece], str]) -> None:
        """Queue pieces of work; those of one task are handed out in this order."""
        self._task_of = task_of
        self._queues: dict[str, deque[Piece]] = {}
        for piece in pieces:
            self._queues.setdefault(task_of(piece), deque()).append(piece)
        self._fresh = deque(self._queues)

    def next_piece(self, latest: Piece | None) -> Piece | None:
        """Return the next piece for a worker, or None if all are handed out.

        Args:
            latest: The worker's latest piece. The next one is of the same task; else of a task
                that nobody has begun; else of the task with most pieces left.
        """
        queue = self._queues[self._task_of(latest)] if latest is not None else None
        if not queue and self._fresh:
            queue = self._queues[self._fresh.popleft()]
        if not queue:
            queue = max(self._queues.values(), key=len, default=None)
        return queue.popleft() if queue else None
