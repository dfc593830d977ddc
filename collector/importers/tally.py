"""What an import counts while it reads and writes; `notes` makes the report of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphcredit.collector.importers.coverage.covered import Coverage
from graphcredit.collector.importers.images.image_types import ELSEWHERE, ImageError
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Omission
from graphcredit.collector.importers.observed import Observed
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.report import BadRow, ImportReport
from graphcredit.collector.importers.rules.judged import Judged
from graphcredit.collector.importers.table import LogFormat
from graphcredit.collector.importers.trajectory import ImportedTrajectory

_KEPT_BAD_ROWS = 100
"""Bad rows that a report names; the others are counted."""


@dataclass(kw_only=True, slots=True)
class Tally:
    """Counts what an import does, while it does it."""

    options: ImportOptions
    sums: ImportReport = field(default_factory=ImportReport)
    """What needs no more than to be added up."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """Sums of the trajectories' counts."""
    groups: Counter[tuple[str, int, str]] = field(default_factory=Counter[tuple[str, int, str]])
    success_by: Counter[str] = field(default_factory=Counter[str])
    """Trajectories by what decided whether they succeeded."""
    candidates: Counter[str] = field(default_factory=Counter[str])
    """Numbers and flags of records without a verdict."""
    values: dict[str, set[float]] = field(default_factory=dict[str, set[float]])
    """Options that would take one of these, to two of the values that it has."""
    notes: dict[str, None] = field(default_factory=dict[str, None])
    observed: Observed = field(default_factory=Observed)
    look: str = ""
    """What the first file looks like that is no log."""
    judged: Judged = field(default_factory=Judged)
    columns: set[str] = field(default_factory=set[str])
    """Fields that `--columns` names and some record had."""
    beside: tuple[str, ...] = ()
    """Names of files beside the log that have verdicts."""
    is_begin: bool = False
    """Whether the log may have more trajectories than were read, also others of their groups."""
    num_equal: int = 0
    """Trajectories that are equal to one of another file, and count."""
    used: set[str] = field(default_factory=set[str])
    """Those of which a trajectory has its verdict."""

    def read_file(self, format_name: str) -> None:
        """Count a file of a format."""
        _add(self.sums.num_files, {format_name: 1})

    def leave_out(self, left: Omission) -> None:
        """Count something that becomes no step."""
        _add(self.sums.left_out, {left.reason: left.count})

    def refuse(self, where: str, reason: str) -> None:
        """Count a bad row, and name it."""
        self.sums.num_bad_rows += 1
        _name(self.sums.bad_rows, [BadRow(where=where, reason=reason)])

    def cover(self, row: LogFormat, value: object, read: list[LoggedRollout]) -> None:
        """Count the texts of a record, and those that its reader did not read."""
        self.sums.coverage.setdefault(row.name, Coverage()).add(value, read, row.aside)

    def lose_image(self, where: str, image: ImageError) -> None:
        """Count an image that is not kept, and name it unless it is only elsewhere."""
        _add(self.sums.left_out, {image.reason: 1})
        if image.reason != ELSEWHERE:
            self.sums.num_bad_images += 1
            reason = f"{image.reason}: {image.detail}"
            _name(self.sums.bad_images, [BadRow(where=where, reason=reason)])

    def take(self, other: "Tally") -> None:
        """Add what was counted while some records were read elsewhere."""
        sums, its = self.sums, other.sums
        sums.num_records += its.num_records
        sums.num_bad_rows += its.num_bad_rows
        sums.num_bad_images += its.num_bad_images
        _add(sums.num_files, its.num_files)
        sums.other_files += its.other_files
        self.look = self.look or other.look
        _add(sums.left_out, its.left_out)
        _name(sums.bad_rows, its.bad_rows)
        _name(sums.bad_images, its.bad_images)
        for name, coverage in its.coverage.items():
            sums.coverage.setdefault(name, Coverage()).take(coverage)
        self.columns |= other.columns

    def add(self, made: ImportedTrajectory, *, is_new: bool) -> None:
        """Count a trajectory."""
        self.sums.num_trajectories += is_new
        self.sums.num_already_there += not is_new
        _add(self.sums.left_out, made.left_out)
        self.notes.update(dict.fromkeys(made.notes))
        self.groups[made.run_id, made.iteration, made.task_id] += 1
        self.success_by[made.verdict.by] += 1
        if made.candidates:
            self.candidates.update(made.candidates.keys())
        for option, value in made.candidates.values():
            if len(known := self.values.setdefault(option, set())) < 2:
                known.add(value)
        _add(self.counts, made.counts)
        self.observed.add(made)
        if self.options.verdicts is not None:
            self.judged.add(made)
        elif made.verdict.judged_as is not None:
            self.used.add(made.verdict.judged_as[0])

    def differ(self, made: ImportedTrajectory, columns: tuple[str, ...], how: str) -> None:
        """Count a trajectory that the store has with other values.

        Args:
            made: The trajectory, as it would be imported.
            columns: The columns that differ.
            how: Where it is in the store, and one value of each.
        """
        report = self.sums
        report.num_different += 1
        report.different_columns = list(dict.fromkeys([*report.different_columns, *columns]))
        report.difference = report.difference or how
        self.groups[made.run_id, made.iteration, made.task_id] += 1


def _add(counts: dict[str, int], others: Mapping[str, int]) -> None:
    for name, number in others.items():
        counts[name] = counts.get(name, 0) + number


def _name(rows: list[BadRow], others: list[BadRow]) -> None:
    rows += others[: _KEPT_BAD_ROWS - len(rows)]
