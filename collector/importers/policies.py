"""Whether a log has rollouts of several policies, by fields and folders that name models."""

from dataclasses import dataclass, field
from math import sqrt

from graphcredit.collector.importers.trajectory import ImportedTrajectory

_WORDS = ("model", "policy", "checkpoint", "agent")
"""Words in names of fields that may say who played."""

_MOST, _LEAST = 8, 10
"""Policies of a run, and rollouts of each."""

_SHARED, _TASKS = 5, 2_000
"""Tasks that several policies played, at least, and those that are remembered."""

_SURE = 3.0
"""z from which two win rates differ."""

_PART = "path:1"

IF_SEVERAL = "if these are several policies"
"""Words of the sentence that no other note has."""


@dataclass(slots=True)
class _Named:
    """The rollouts of a run, by one field."""

    ends: dict[str, list[bool]] = field(default_factory=dict[str, list[bool]])
    """Whether each won, by value: of as many values as are one too many."""
    first: dict[str, str] = field(default_factory=dict[str, str])
    """The first value of each task."""
    shared: set[str] = field(default_factory=set[str])
    """Tasks with several values."""

    def add(self, value: str, task: str, won: bool) -> None:
        if value in self.ends or len(self.ends) <= _MOST:
            self.ends.setdefault(value, []).append(won)
        if len(self.first) < _TASKS and self.first.setdefault(task, value) != value:
            self.shared.add(task)

    def are_policies(self) -> bool:
        """Return whether they may be, and are many enough."""
        is_few = 1 < len(self.ends) <= _MOST and len(self.shared) >= _SHARED
        return is_few and min(map(len, self.ends.values())) >= _LEAST


@dataclass(kw_only=True, slots=True)
class Policies:
    """Wins of the rollouts of each run, by what may name their policy."""

    _named: dict[tuple[str, str], _Named] = field(default_factory=dict[tuple[str, str], _Named])

    def add(self, made: ImportedTrajectory) -> None:
        """Count a trajectory."""
        if made.verdict.success is None:
            return
        named = [(n, v) for n, v in made.labels.items() if any(w in n.lower() for w in _WORDS)]
        for name, value in (*named, *([(_PART, made.part)] if made.part else [])):
            its = self._named.setdefault((made.run_id, name), _Named())
            its.add(value, made.task_id, made.verdict.success)

    def sentence(self) -> str | None:
        """Return which policies of a run differ most surely in their wins, and how to part them."""
        surest, found = _SURE, None
        for (_, name), its in self._named.items():
            ends = sorted(its.ends.items(), key=lambda item: sum(item[1]) / len(item[1]))
            if its.are_policies() and (z := _z(ends[0][1], ends[-1][1])) > surest:
                surest, found = z, (name, ends[0], ends[-1])
        if found is None:
            return None
        name, (low, lost), (high, won) = found
        by = "in" if name == _PART else f"with {name}"
        return (
            f"rollouts {by} {low!r} won {sum(lost)} of {len(lost)}, {by} {high!r} {sum(won)} of "
            f"{len(won)}, some of the same tasks: {IF_SEVERAL}, --columns run_id={name} compares "
            "the rollouts of each among themselves"
        )


def _z(lost: list[bool], won: list[bool]) -> float:
    """Return by how many standard errors the second share of wins is larger."""
    one, other = len(lost), len(won)
    share = (sum(lost) + sum(won)) / (one + other)
    error = sqrt(share * (1 - share) * (1 / one + 1 / other))
    return (sum(won) / other - sum(lost) / one) / error if error else 0.0
