"""Grow a tree of trajectories: sample several decisions at a state, and follow each of them.

At each state the allocation gives the number of decisions to sample. All are tried. The one with
the greatest step reward continues the path, the others go to the frontier. When a path has ended,
the decision that joined the frontier last is next: the environment is brought back to its state,
and its path continues. Every path from the root to a leaf is a trajectory. Source: 3SPO paper,
section 3.4 and Algorithm 1.

The number of trajectories of a task is fixed, so no more decisions are sampled than there are
trajectories left to follow them. The alternatives are worse. If decisions were tried and then
dropped, those would be the ones of low rank, and the recorded decisions would not be distributed
like the policy's. If dropped decisions were recorded as they are, they would count as failures,
though nobody saw them fail.
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
    decision: Decision
    done: Transition


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """The path from the root of a tree to one of its nodes."""

    view: PolicyView
    steps: tuple[PathStep, ...] = ()
    branched_from: int | None = None
    """Number of the path that it branches from; None for the first of its tree."""
    num_shared: int = 0
    """Number of steps that it shares with that path."""

    @property
    def has_ended(self) -> bool:
        """Whether the environment has ended the episode."""
        return bool(self.steps) and self.steps[-1].done.terminated

    @property
    def actions(self) -> list[str]:
        """The actions of its steps, without malformed answers, which the environment never got."""
        return [s.decision.action for s in self.steps if not s.decision.is_malformed]


class Walk:
    """An environment that can take a step at the end of any path: it backtracks by replaying."""

    def __init__(self, environment: Environment, task_id: str) -> None:
        self.task_id = task_id
        self.root = Path(view=PolicyView(observation=environment.reset()))
        self._environment = environment
        self._stands_at = self.root

    def extend(self, path: Path, decision: Decision) -> Path:
        """Return the path with one more step.

        Raises:
            InputError: The same actions led to another state when they were repeated.
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
    """Sample, try, rank and backtrack until the frontier is empty; return the paths as they ended.

    At the root there is at least one decision, so each task has at least one trajectory.
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
    """Return the number of decisions to sample at the end of a path; 0 if the path ends there."""
    if path.has_ended or len(path.steps) == max_steps:
        return 0
    wanted = allocation.num_rollouts(walk.task_id, path.view.observation.state)
    return wanted if path.steps else max(wanted, 1)


def _rank(walk: Walk, allocation: Allocation, path: Path) -> float:
    last = path.steps[-1]
    return -allocation.step_reward(walk.task_id, last.before.state, last.done)
