"""The base class of policies without a model."""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import Decision, DecisionRequest


class ScriptedPolicy(ABC):
    """Decides each request by itself, from the observation and random numbers only."""

    __slots__ = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Empty: the name determines its actions."""
        return {}

    @property
    def concurrency(self) -> int:
        """One: batches of requests do not make it faster."""
        return 1

    @property
    def needs_oracle(self) -> bool:
        """Whether it follows the environment's plan."""
        return False

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
