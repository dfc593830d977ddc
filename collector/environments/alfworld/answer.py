"""What a game answers to a sequence of actions."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a sequence of actions leads to."""

    state: str
    """All that is true and can change, as text."""
    text: str
    """The game's reply to the last action; at first, its opening."""
    task: str | None
    actions: tuple[str, ...]
    """Admissible actions, sorted."""
    plan: tuple[str, ...] | None
    """A plan from here: empty if won, None if there is none or none was asked for."""
    is_won: bool
    is_valid: bool
    """Whether the last action was admissible; true if there was none."""
