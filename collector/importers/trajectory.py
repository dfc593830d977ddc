"""A trajectory that was made of a rollout, ready for the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphcredit.collector.importers.images.kept import KeptImage
from graphcredit.collector.importers.rules.outcomes import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryFacts:
    """What identifies a trajectory, and what the report says of it: all but its steps."""

    run_id: str
    iteration: int
    task_id: str
    trajectory_id: str
    has_own_id: bool
    """Whether the log has an id for it; otherwise the id is made of its content."""
    content: bytes
    """A digest of its steps, where the log has an id for it."""
    num_steps: int
    verdict: Verdict
    candidates: tuple[str, ...]
    """Without a verdict: fields of the record that might tell."""
    is_truncated: bool
    is_reward_of_success: bool
    """Whether its reward is 1 or 0 by its success, because the log has no reward."""
    num_missed_states: int
    """States that the rule did not find."""
    num_empty_actions: int
    """Steps whose message has neither text nor calls that are known."""
    num_turn_rewards: int
    """Turns with a reward of their own in the log."""
    num_partial_tokens: int
    """Steps whose token ids were left out, because prompt or log-probabilities are missing."""
    num_with_tokens: int
    """Steps with token ids."""
    num_images: int
    """Images that its messages show."""
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedTrajectory:
    """A trajectory, ready for the store."""

    facts: TrajectoryFacts
    columns: Mapping[str, list[Any]]
    """The columns of its steps that have a value, by name. The last step ends the trajectory,
    unless it is unknown whether it succeeded."""
    images: tuple[KeptImage, ...] = ()
    """The images of its messages, each once."""

    @property
    def steps(self) -> tuple[dict[str, Any], ...]:
        """The columns of each step by name."""
        names = tuple(self.columns)
        return tuple(
            dict(zip(names, row, strict=True)) for row in zip(*self.columns.values(), strict=True)
        )
