"""What an environment is to a rollout: three records and three methods.

An environment is one file in `environments/` with a class that has the methods of `Environment`, a
function that opens it, a function that names its tasks, and a row in `registry.py`.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One initial state to play from. It can be pickled: a worker opens its own environment."""

    environment: str
    """Name in the table of environments."""
    spec: str
    """What the environment needs to make this initial state again, anywhere: settings and seed."""

    @property
    def task_id(self) -> str:
        """The stable, readable name under which its rollouts are recorded."""
        return f"{self.environment}-{self.spec}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What there is to know before an action."""

    state: str
    """What identifies the state: equal whenever the agent is in the same situation again, so
    without counters, scores and what was just said."""
    text: str | None
    """The full text shown to the agent; None where it is the state."""
    admissible_actions: tuple[str, ...] | None
    """What the environment accepts here, sorted; None where it cannot tell."""
    oracle_actions: tuple[str, ...] | None
    """A plan that wins from here: empty when won, None when there is none or it was not asked
    for."""
    oracle_distance: float | None
    """Cost of that plan; 0 when won, None where there is no plan."""
    thoughts: Mapping[str, str] | None = None
    """What a scripted policy says before an action, by action; None where the environment lends no
    words. A policy with words of its own ignores it."""
    task: str | None = None
    """What is to be done, in words; None where the environment does not say it."""
    situation: Hashable | None = None
    """Equal only where every action does the same from here on, whatever was done before; None
    where the environment cannot tell. Unlike `state` it may have what the agent cannot see."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """What one action did."""

    observation: Observation
    """What there is to know now."""
    reward: float
    """Reward of this step."""
    cost: float
    """Cost of this step, > 0; 1.0 where the environment knows no costs."""
    is_action_valid: bool
    """False: the environment refused the action, and its state is as it was."""
    terminated: bool
    """The episode is over: won, lost or closed by the environment. No step may follow."""
    success: bool
    """The task is accomplished with this step."""


class Environment(Protocol):
    """One task, ready to be played any number of times.

    The same actions after a reset give the same transitions, so any state can be reached again:
    reset, then step through the prefix that led there.
    """

    @property
    def note(self) -> str | None:
        """What a report should say about how the task was made; None for nothing."""
        ...

    def reset(self) -> Observation:
        """Start an episode from the task's initial state."""
        ...

    def step(self, action: str) -> Transition:
        """Do one action. A refused action is a transition like any other, marked as not valid."""
        ...

    def close(self) -> None:
        """Let go of whatever the environment holds; it cannot be used afterwards."""
        ...


def replay(environment: Environment, actions: Sequence[str]) -> Observation:
    """Reset, take the actions of a prefix, and return what there is to know after them."""
    observation = environment.reset()
    for action in actions:
        observation = environment.step(action).observation
    return observation
