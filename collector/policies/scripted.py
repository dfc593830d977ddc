"""What policies without a model have in common."""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import Decision, DecisionRequest


class ScriptedPolicy(ABC):
    """Answers each question by itself, from the observation and chance alone."""

    __slots__ = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its name says everything."""
        return {}

    @property
    def concurrency(self) -> int:
        """It gains nothing from being asked several questions at once."""
        return 1

    @property
    def needs_oracle(self) -> bool:
        """Whether it follows a plan."""
        return False

    def decide(self, questions: Sequence[DecisionRequest]) -> list[list[Decision]]:
        """Answer one question after the other."""
        return [
            [self.act(question.view.observation, question.rng) for _ in range(question.count)]
            for question in questions
        ]

    @abstractmethod
    def act(self, observation: Observation, rng: random.Random) -> Decision:
        """Return one decision."""


def scripted(observation: Observation, action: str) -> Decision:
    """Return a decision of a policy that has no words of its own, in the environment's words."""
    thoughts = observation.thoughts or {}
    return Decision(action=action, thought=thoughts.get(action))
