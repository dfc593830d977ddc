"""The interface of a policy: the request for decisions, and the decision."""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.environments.base import Observation


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyView:
    """The information that a policy has before an action."""

    observation: Observation
    history: tuple[tuple[Observation, str], ...] = ()
    """Earlier observations of this trajectory with the action taken, oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionRequest:
    """A request for decisions at one step."""

    view: PolicyView
    rng: random.Random
    """The trajectory's random number generator, the only source of randomness."""
    count: int = 1
    """Number of independent decisions to make."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledTokens:
    """The prompt of a language model, and the tokens that it sampled."""

    prompt_ids: Sequence[int]
    response_ids: Sequence[int]
    """Token ids of the answer, its end token included."""
    response_logprobs: Sequence[float] | None
    """Log-probability of each sampled token, at the temperature; None if none was sampled."""
    temperature: float | None
    """Sampling temperature; None if none was sampled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """An action with its reasoning."""

    action: str
    """The action for the environment; the whole answer if it is malformed."""
    thought: str | None = None
    """Reasoning before the action, recorded as `thought`; None if there is none."""
    tokens: SampledTokens | None = None
    """The language model's tokens; None for other policies."""
    is_malformed: bool = False
    """Whether the answer has no action: it counts as invalid, and the environment never gets it."""


class Policy(ABC):
    """Chooses actions. It can be pickled, and holds no state of an episode."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name on the command line, or the version of its weights: `policy_version`."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Fields of `Settings` that determine its actions, apart from the name."""
        return {}

    @property
    def needs_oracle(self) -> bool:
        """Whether observations must include a winning plan."""
        return False

    @property
    def concurrency(self) -> int:
        """Number of trajectories to play at a time by default."""
        return 1

    @property
    def notes(self) -> tuple[str, ...]:
        """Oddities of it that a report of a collection tells."""
        return ()

    @abstractmethod
    def decide(self, questions: Sequence[DecisionRequest]) -> list[list[Decision]]:
        """Return, for each request, `count` decisions."""
