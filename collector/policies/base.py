"""What a policy is asked at a step, and what it decides."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from graphcredit.collector.environments.base import Observation


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyView:
    """What a policy may know before an action."""

    observation: Observation
    """What there is to know now."""
    history: tuple[tuple[Observation, str], ...] = ()
    """Earlier observations of this trajectory with the action taken, oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionRequest:
    """What to do in a situation."""

    view: PolicyView
    """The situation."""
    rng: random.Random
    """The trajectory's own; all chance comes from it."""
    count: int = 1
    """Decisions wanted, independent of each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledTokens:
    """What a language model was given and what it sampled."""

    prompt_ids: Sequence[int]
    """Token ids it was given."""
    response_ids: Sequence[int]
    """Token ids it sampled, the one that ends the answer included."""
    response_logprobs: Sequence[float] | None
    """Log-probability of each sampled token, at the temperature; None where it was not sampled."""
    temperature: float | None
    """Of sampling; None where it was not sampled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """An action, and why."""

    action: str
    """What the environment is given; a malformed answer as a whole."""
    thought: str | None = None
    """Reasoning before the action, recorded as `thought`; None where the policy has no words."""
    tokens: SampledTokens | None = None
    """What a language model made the decision of; None for other policies."""
    is_malformed: bool = False
    """The answer has no action in it: an invalid action, of which the environment is not told."""
