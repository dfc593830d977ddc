"""The truth about a step, where the log knows it: its progress.

The true distance to the goal is the environment's. The *seen* distance is that of the group's own
graph, which is all that estimators know; the two differ where the group did not see everything.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, TypeAlias

Verdict: TypeAlias = Literal["agrees", "conflicts"]

MARKS: Mapping[Verdict | None, str] = {"agrees": "✓", "conflicts": "✗", None: ""}
"""Signs for lists and drawings."""

PROGRESS = "oracle_distance - next_oracle_distance"
"""SQL of how much nearer to the goal a step led; null or not finite where it is not known."""


def progress_of(step: Mapping[str, Any]) -> float | None:
    """Return how much nearer to the goal a step led; None if that is not known."""
    before, after = step["oracle_distance"], step["next_oracle_distance"]
    if before is None or after is None or not isfinite(before - after):
        return None
    return before - after


def verdict(credit: float | None, progress: float | None) -> Verdict | None:
    """Return whether credit has the sign of the true progress.

    None if one of them is not known or 0, as in the audit: there is no sign to compare.
    """
    if credit is None or progress is None or not credit or not progress:
        return None
    return "agrees" if (credit > 0) == (progress > 0) else "conflicts"


def seen_change(step: Mapping[str, Any]) -> str | None:
    """Return the seen distance before and after a step as text; None if there never was a way."""
    return _change(step["goal_distance"], step["next_goal_distance"], unknown="no way")


def true_change(step: Mapping[str, Any]) -> str | None:
    """Return the true distance before and after a step as text; None if it was not logged."""
    return _change(step["oracle_distance"], step["next_oracle_distance"], unknown="unknown")


def _change(before: float | None, after: float | None, *, unknown: str) -> str | None:
    if before is None and after is None:
        return None
    first, second = (unknown if value is None else f"{value:g}" for value in (before, after))
    return f"{first} → {second}"
