"""The interface between environments and rollouts: three records and three methods.

An environment is a folder with a class that has the methods of `Environment`, a function that opens
it, a function that names its tasks, and a row in `registry.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One initial state to play from. It can be pickled: a worker opens its own environment."""

    environment: str
    """Name in the table of environments."""
    spec: str
    """The settings and the seed from which the environment makes this initial state anywhere."""

    @property
    def task_id(self) -> str:
        """The stable, readable id under which its rollouts are recorded."""
        return f"{self.environment}-{self.spec}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """The observation before an action."""

    state: str
    """Text that identifies the state. It is equal whenever the agent is in the same situation, so
    it has no counters, no scores and no reply to the last action."""
    text: str | None = None
    """The full text shown to the agent; None if that is the state."""
    admissible_actions: tuple[str, ...] | None = None
    """The actions that the environment accepts here, sorted; None if it cannot tell."""
    oracle_actions: tuple[str, ...] | None = None
    """A plan that wins from here: empty if won, None if there is none or none was requested."""
    thoughts: Mapping[str, str] | None = None
    """By action, the thought that a scripted policy records with it; None if the environment offers
    none. Language models ignore it."""
    task: str | None = None
    """Description of the task in words; None if the environment has none."""

    @property
    def oracle_distance(self) -> float | None:
        """Length of the plan: 0 if won, None if there is no plan."""
        return None if self.oracle_actions is None else float(len(self.oracle_actions))


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """The result of one action."""

    observation: Observation
    reward: float = 0.0
    cost: float = 1.0
    """Cost of this step, > 0."""
    is_action_valid: bool = True
    """False if the environment refused the action, which left its state unchanged."""
    terminated: bool = False
    """Whether the episode is over: won, lost or closed by the environment. No step may follow."""
    success: bool = False
    """Whether this step accomplished the task."""


class Environment(Protocol):
    """One task, which can be played any number of times; a class may inherit what it leaves open.

    It is deterministic: the same actions after a reset give the same transitions. So any state can
    be reached again by a reset and a replay of the actions that led there.
    """

    note: str | None = None
    """A remark for the report about how the task was generated, or None."""

    def reset(self) -> Observation:
        """Start an episode from the task's initial state."""
        ...

    def step(self, action: str) -> Transition:
        """Take one action. A refused action gives a transition, too, marked as not valid."""
        ...

    def close(self) -> None:
        """Release the environment's resources, if there are any; it cannot be used afterwards."""


def replay(environment: Environment, actions: Sequence[str]) -> Observation:
    """Reset, take the actions, and return the observation after them."""
    observation = environment.reset()
    for action in actions:
        observation = environment.step(action).observation
    return observation
