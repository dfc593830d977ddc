"""Policies without a model: the random policy and the oracle, and their base class."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import Decision, DecisionRequest, Policy
from graphcredit.store.errors import InputError, OptionError


class ScriptedPolicy(Policy):
    """Decides each request by itself, from the observation and random numbers only."""

    __slots__ = ()

    def decide(self, questions: Sequence[DecisionRequest]) -> list[list[Decision]]:
        """Decide one request after the other."""
        return [
            [self.act(question.view.observation, question.rng) for _ in range(question.count)]
            for question in questions
        ]

    @abstractmethod
    def act(self, observation: Observation, rng: random.Random) -> Decision:
        """Return one decision."""


def scripted(observation: Observation, action: str) -> Decision:
    """Return a decision with the environment's thought for its action, if it offers one."""
    thoughts = observation.thoughts or {}
    return Decision(action=action, thought=thoughts.get(action))


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomPolicy(ScriptedPolicy):
    """Uniform over the admissible actions, including those that only look."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return "random"

    def act(self, observation: Observation, rng: random.Random) -> Decision:
        """Return one of the admissible actions."""
        return scripted(observation, any_admissible(observation, rng))


def any_admissible(observation: Observation, rng: random.Random) -> str:
    """Return an admissible action at random."""
    if not observation.admissible_actions:
        raise InputError(
            "a random policy needs the environment's admissible actions: there are none at "
            f"{observation.state[:80]!r}"
        )
    return rng.choice(observation.admissible_actions)


@dataclass(frozen=True, kw_only=True, slots=True)
class OraclePolicy(ScriptedPolicy):
    """Follows the plan with probability 1 - epsilon, else takes a random admissible action.

    Its skill can be anything between perfect and random, and the true quality of each step is
    known. A mistake is any admissible action, including those that only look: credit must find
    wasted steps, so the data must have them. A mistake may happen to be the plan's action.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon <= 1.0:
            raise OptionError(f"epsilon of the oracle policy must be 0 to 1: got {self.epsilon}")

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"oracle:{self.epsilon}"

    @property
    def needs_oracle(self) -> bool:
        """True: it follows the environment's plan."""
        return True

    def act(self, observation: Observation, rng: random.Random) -> Decision:
        """Return the plan's next action or a mistake; without a plan, a random action."""
        if observation.oracle_actions and rng.random() >= self.epsilon:
            return scripted(observation, observation.oracle_actions[0])
        return scripted(observation, any_admissible(observation, rng))
