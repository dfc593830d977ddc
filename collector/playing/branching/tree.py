"""The shape of a tree of trajectories: several decisions where a state is unresolved.

At each state the allocation says how many decisions to ask for. Each is tried; the one of greatest
step reward goes on, the others wait on the frontier. When a path has ended, the decision that
waited last is next: the environment is brought back to it and its path goes on from there. Every
path from the root to a leaf is a trajectory. Source: 3SPO paper, section 3.4 and Algorithm 1.

A task has so many trajectories and no more, so no more decisions are asked for than there are
trajectories left to follow them. The alternatives are worse: decisions that are tried and then left
are those of low rank, so what was recorded would not be what the policy does; recorded as they are,
they would be failures that nobody saw fail.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from graphcredit.collector.environments.base import Environment, Observation, Transition, replay
from graphcredit.collector.playing.branching.allocation import Allocation
from graphcredit.collector.playing.episode import after, take
from graphcredit.collector.policies.base import Decision, DecisionRequest, PolicyView
from graphcredit.store.errors import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class PathStep:
    """One step of a path."""

    before: Observation
    """What there was to know."""
    decision: Decision
    """What was decided."""
    done: Transition
    """What it did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """The way from the root of a tree to one of its nodes."""

    view: PolicyView
    """What there is to know at its end."""
    steps: tuple[PathStep, ...] = ()
    """Its steps, from the root."""
    branched_from: int | None = None
    """Number of the path that it leaves; None for the first of its tree."""
    num_shared: int = 0
    """How many of its steps are also steps of that path."""

    @property
    def has_ended(self) -> bool:
        """Whether the environment has ended the episode."""
        return bool(self.steps) and self.steps[-1].done.terminated

    @property
    def actions(self) -> list[str]:
        """What the environment was told on the way."""
        return [s.decision.action for s in self.steps if not s.decision.is_malformed]


class Walk:
    """An environment that can be asked what a decision does at the end of any path."""

    def __init__(self, environment: Environment, task_id: str) -> None:
        """Start at the root of the task's tree."""
        self.task_id = task_id
        self.root = Path(view=PolicyView(observation=environment.reset()))
        self._environment = environment
        self._stands_at = self.root

    def extend(self, path: Path, decision: Decision) -> Path:
        """Return the path with one step more.

        Raises:
            InputError: The same actions led elsewhere when they were repeated.
        """
        if self._stands_at is not path:
            self._return_to(path)
        before = path.view.observation
        done = take(self._environment, before, decision)
        step = PathStep(before=before, decision=decision, done=done)
        view = after(path.view, decision, done)
        self._stands_at = replace(path, view=view, steps=(*path.steps, step))
        return self._stands_at

    def _return_to(self, path: Path) -> None:
        found, expected = replay(self._environment, path.actions), path.view.observation
        if found.state != expected.state:
            raise InputError(
                "an allocation needs a deterministic environment, in which the same actions lead "
                f"to the same state: in task {self.task_id!r}, {path.actions} led to "
                f"{expected.state[:200]!r}, and when repeated to {found.state[:200]!r}. "
                "Play this environment without an allocation."
            )


def grow(
    walk: Walk, allocation: Allocation, rng: Random, *, max_steps: int
) -> Generator[DecisionRequest, list[Decision], list[Path]]:
    """Ask, try, rank and backtrack until nothing waits; return paths in the order they ended.

    At the root there is at least one decision: a task that is played has a trajectory.

    Args:
        walk: At the root.
        allocation: How many decisions to ask for.
        rng: All chance of the tree.
        max_steps: Steps of the longest path.

    Raises:
        InputError: The environment is not deterministic.
    """
    ended: list[Path] = []
    frontier = [walk.root]
    while frontier:
        path = frontier.pop()
        while wanted := _num_wanted(path, walk, allocation, max_steps):
            count = min(wanted, allocation.tree_size - len(ended) - len(frontier))
            decisions = yield DecisionRequest(view=path.view, rng=rng, count=count)
            tried = [walk.extend(path, decision) for decision in decisions]
            num_shared = len(path.steps)
            path, *others = sorted(tried, key=partial(_rank, walk, allocation))
            frontier += [
                replace(other, branched_from=len(ended), num_shared=num_shared)
                for other in reversed(others)
            ]
        ended.append(path)
    return ended


def _num_wanted(path: Path, walk: Walk, allocation: Allocation, max_steps: int) -> int:
    """Return how many decisions to ask for at the end of a path; 0 where it ends."""
    if path.has_ended or len(path.steps) == max_steps:
        return 0
    wanted = allocation.num_rollouts(walk.task_id, path.view.observation.state)
    return wanted if path.steps else max(wanted, 1)


def _rank(walk: Walk, allocation: Allocation, path: Path) -> float:
    last = path.steps[-1]
    return -allocation.step_reward(walk.task_id, last.before.state, last.done)
