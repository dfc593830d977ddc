"""Which verdicts of `--verdicts` are of a trajectory, and which trajectories have one."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphcredit.collector.importers.rules.verdicts import verdicts_of
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.plural import counted

_SHOWN = 5
"""Ids that a note names."""


@dataclass(kw_only=True, slots=True)
class Judged:
    """Counts over the trajectories of a log."""

    _judged: Counter[str] = field(default_factory=Counter[str])
    _others: list[str] = field(default_factory=list[str])
    """Trajectories without a verdict in the file."""

    def add(self, made: ImportedTrajectory) -> None:
        """Count a trajectory."""
        if made.verdict.judged_as is None:
            self._others.append(f"{made.trajectory_id} ({made.task_id})")
        else:
            self._judged[made.verdict.judged_as] += 1

    def notes(self, path: Path) -> Iterator[str]:
        """Yield what matched, and what did not."""
        known = verdicts_of(path).by_id
        yield (
            f"verdicts of {path}: {counted(len(known), 'verdict')}, "
            f"{len(self._judged):,} of them of {counted(self._judged.total(), 'trajectory')}"
        )
        if unknown := [name for name in known if name not in self._judged]:
            yield f"{counted(len(unknown), 'verdict')} of no trajectory: {_named(unknown)}"
        if self._others:
            yield (
                f"{counted(len(self._others), 'trajectory')} without a verdict in the file, which "
                f"keep that of the log: {_named(self._others)}"
            )
        if several := [name for name, number in self._judged.items() if number > 1]:
            yield (
                f"{counted(len(several), 'verdict')} of several trajectories each, which then have "
                f"the same: {_named(several)}. If these are rollouts of one task, each needs its "
                "own: import their files one by one, each with its verdicts and a --run"
            )


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
