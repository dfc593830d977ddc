"""Which verdicts of `--verdicts` are of a trajectory, and which trajectories have one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from graphcredit.collector.importers.messages.values import snake_case
from graphcredit.collector.importers.rules.verdicts import ID_NAMES, UNNAMED, verdicts_of
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.errors import InputError
from graphcredit.store.plural import counted

_SHOWN = 5
"""Ids that a note names."""

_FEW = 3
"""Ids of each side that an error names."""


@dataclass(kw_only=True, slots=True)
class Judged:
    """Counts over the trajectories of a log."""

    _judged: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Fields of ids and ids, to the trajectories that these judge."""
    _others: list[str] = field(default_factory=list[str])
    """Trajectories without a verdict in the file."""

    def add(self, made: ImportedTrajectory) -> None:
        """Count a trajectory."""
        by = made.verdict.judged_as
        if by is None:
            self._others.append(f"{made.trajectory_id} ({made.task_id})")
        elif by[0] != UNNAMED:
            self._judged[by] += 1

    def notes(self, path: Path) -> Iterator[str]:
        """Yield what matched, and what did not."""
        verdicts = verdicts_of(path)
        fields = dict.fromkeys(name for name, _ in self._judged)
        ids = next(iter(fields or verdicts.by_field))
        known = verdicts.by_field[ids]
        by = f" ({verdicts.sentence(ids)})" if verdicts.scores else ""
        yield (
            f"verdicts of {path}: {counted(len(known), 'verdict')}{by}, "
            f"{len(self._judged):,} of them of {counted(self._judged.total(), 'rollout')}"
        )
        if unknown := [name for name in known if (ids, name) not in self._judged]:
            yield f"{counted(len(unknown), 'verdict')} of no rollout: {_named(unknown)}"
        if self._others:
            yield (
                f"{counted(len(self._others), 'rollout')} without a verdict in the file, which "
                f"keep that of the log: {_named(self._others)}"
            )
        if several := [name for (_, name), number in self._judged.items() if number > 1]:
            yield (
                f"{counted(len(several), 'verdict')} of several rollouts each, which then have "
                f"the same: {_named(several)}. If these are rollouts of one task, each needs its "
                "own: name files, rollouts or tries in the verdicts"
            )


def refuse_unmatched(
    path: Path, first: Sequence[ImportedTrajectory], others: Callable[[], bool]
) -> None:
    """Raise InputError if no verdict of a file is of a trajectory.

    Args:
        path: The file.
        first: The first trajectories of the log.
        others: Returns whether any of the log has one; asked if none of the first has.
    """
    if not first or any(map(is_named, first)) or others():
        return
    verdicts = verdicts_of(path)
    known = ", ".join(islice(chain.from_iterable(verdicts.by_field.values()), _FEW))
    names = map(_name_of, first[:_FEW])
    raise InputError(
        f"--verdicts must name what the log names, and none of {path} is of a rollout. The "
        f"file has {known} ({verdicts.sentence()}); the log has {', '.join(dict.fromkeys(names))}. "
        "Ids are those of rollouts, sessions, instances or tasks, or names of files and folders"
    )


def is_named(made: ImportedTrajectory) -> bool:
    """Return whether a file of verdicts names a trajectory."""
    return made.verdict.judged_as is not None and made.verdict.judged_as[0] != UNNAMED


def _name_of(made: ImportedTrajectory) -> str:
    ids = (f"{name} {text}" for name, text in made.labels.items() if snake_case(name) in ID_NAMES)
    return next(ids, made.trajectory_id)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
