"""What a policy decides at a step."""

from dataclasses import dataclass

from graphcredit.collector.environment import Observation


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """An action, and why."""

    action: str
    """What the environment is given."""
    thought: str | None = None
    """Reasoning before the action, recorded as `thought`; None where the policy has no words."""


def scripted(observation: Observation, action: str) -> Decision:
    """Return a decision of a policy that has no words of its own, in the environment's words."""
    thoughts = observation.thoughts or {}
    return Decision(action=action, thought=thoughts.get(action))
