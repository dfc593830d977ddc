"""The report of an import: all that was read, made, left out or refused."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from graphcredit.collector.importers.coverage.covered import Coverage
from graphcredit.collector.importers.images.image_types import ELSEWHERE, ImageError
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Omission
from graphcredit.collector.importers.messages.tokens import WITHOUT_TOKENS
from graphcredit.collector.importers.observed import Observed
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.prompts import VERDICTS
from graphcredit.collector.importers.rules.judged import Judged
from graphcredit.collector.importers.rules.outcomes import RETURN
from graphcredit.collector.importers.table import LogFormat
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.plural import counted
from graphcredit.store.text_table import Report

_SHOWN_CANDIDATES = 12
"""Numbers of records without a verdict that a note names."""

_SHOWN_FIELDS = 5
"""Fields that nobody read that a note names."""

_KEPT_BAD_ROWS = 100
"""Bad rows that a report names; the others are counted."""

_NAME = re.compile(r"[\w.]+")
"""A name that an option takes as it is."""

_REMEDY = "--group names a field that rollouts of one task share"


@dataclass(frozen=True, kw_only=True, slots=True)
class BadRow:
    """A record that could not be imported."""

    where: str
    """File and line."""
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(kw_only=True, slots=True, repr=False)
class ImportReport(Report):
    """What an import read and made."""

    num_files: dict[str, int] = field(default_factory=dict[str, int])
    """Files read, by format."""
    num_records: int = 0
    """Rows, items and samples read from them."""
    num_trajectories: int = 0
    """Trajectories written now."""
    num_already_there: int = 0
    """Trajectories that the store had, with the same steps."""
    num_different: int = 0
    """Trajectories that the store had with other values; nothing was changed."""
    different_columns: list[str] = field(default_factory=list[str])
    """The columns in which those differ."""
    difference: str = ""
    """How the first of those differs; empty if there is none."""
    num_steps: int = 0
    """Steps of those written now, and of those there with the same steps."""
    num_groups: int = 0
    """Groups of these, and of those with other values."""
    num_single_groups: int = 0
    """Groups with one trajectory."""
    num_success: int = 0
    num_failed: int = 0
    """Trajectories that ended without success, truncated ones not counted."""
    num_truncated: int = 0
    """Unsuccessful trajectories that a limit ended."""
    num_by_return: int = 0
    """Trajectories whose return is known, and not whether it is a win."""
    num_unjudged: int = 0
    """Trajectories without reward and success; they are incomplete in the store."""
    num_with_tokens: int = 0
    """Steps with token ids."""
    num_with_logprobs: int = 0
    """Of these, steps with log-probabilities."""
    without_tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Steps without token ids, by reason."""
    num_images: int = 0
    """Images that messages of the counted steps show, and that are kept."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """What became no step, by reason."""
    other_files: list[str] = field(default_factory=list[str])
    """Files of the folder that are no logs of a known format."""
    bad_rows: list[BadRow] = field(default_factory=list[BadRow])
    """The first bad rows."""
    num_bad_rows: int = 0
    bad_images: list[BadRow] = field(default_factory=list[BadRow])
    """The first images that are missing, damaged or may not be read; their rows are imported."""
    num_bad_images: int = 0
    coverage: dict[str, Coverage] = field(default_factory=dict[str, Coverage])
    """How much of the text became part of a step, by format, and what did not."""
    notes: list[str] = field(default_factory=list[str])
    """What was decided, and what to know about it."""

    def headline(self) -> str:
        """Return how many trajectories were made."""
        return (
            f"{counted(self.num_trajectories, 'rollout')} imported, "
            f"{self.num_already_there:,} were there already"
        )

    def as_json(self) -> dict[str, Any]:
        """Return everything above by name."""
        return asdict(self)


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

    def _option(self) -> str | None:
        """Return an option that gives each record without a verdict one, which differ."""
        for option, values in self.values.items():
            name = option.partition(" ")[2]
            is_there = self.candidates[name] == self.counts["unjudged"] and len(values) > 1
            if is_there and _NAME.fullmatch(name) and any(w in name.lower() for w in VERDICTS):
                return option
        return None

    def report(self) -> ImportReport:
        """Return the counts so far."""
        counts, path = self.counts, self.options.verdicts
        num_single = 0 if self.is_begin else sum(size == 1 for size in self.groups.values())
        are_doubtful = len(self.groups) == 1 or 2 * num_single > len(self.groups)
        return replace(
            self.sums,
            num_steps=counts["steps"],
            num_groups=len(self.groups),
            num_single_groups=num_single,
            num_success=counts["success"],
            num_failed=counts["failed"],
            num_truncated=counts["truncated"],
            num_by_return=counts["by_return"],
            num_unjudged=counts["unjudged"],
            num_with_tokens=counts["tokens"],
            num_with_logprobs=counts["logprobs"],
            without_tokens={
                name.removeprefix(WITHOUT_TOKENS): number
                for name, number in counts.items()
                if name.startswith(WITHOUT_TOKENS)
            },
            num_images=counts["images"],
            notes=[
                *self._decided(),
                *self.observed.decided(are_doubtful=are_doubtful),
                *([] if path is None else self.judged.notes(path)),
                *self._unread(),
                *self.observed.warnings(),
                *self._warnings(),
                *self.notes,
            ],
        )

    def _decided(self) -> list[str]:
        if not self.success_by:
            return []
        by = {name: n for name, n in self.success_by.items() if name not in ("nothing", RETURN)}
        judged = [f"{name} ({count:,})" for name, count in by.items()]
        num_scored = self.counts["scored"]
        scored = f"; {counted(num_scored, 'step')} with a score" if num_scored else ""
        return [
            f"state: {self.options.state}; group: {self.options.group}; "
            f"reward: {self.options.reward}; success by {', '.join(judged) or 'nothing'}{scored}"
        ]

    def _unread(self) -> Iterator[str]:
        """Yield what of the records became part of no step."""
        for name, coverage in self.sums.coverage.items():
            fields = coverage.sentences()
            if fields:
                more = len(fields) - _SHOWN_FIELDS
                rest = f"; and {counted(more, 'field')} more, which --json names" * (more > 0)
                yield (
                    f"{name}: texts of the records that are in no step: "
                    f"{'; '.join(fields[:_SHOWN_FIELDS])}{rest}"
                )
            if guessed := coverage.guessed.most_common(_SHOWN_FIELDS):
                named = ", ".join(f"`{path}` ({number:,})" for path, number in guessed)
                yield (
                    f"{name}: records have too many texts to look for each in the steps, so most "
                    f"of those before in their field decided about texts of {named}"
                )

    def _warnings(self) -> list[str]:
        counts = self.counts
        notes: list[str] = []
        if unused := [name for name in self.beside if name not in self.used]:
            more = f" and {len(unused) - _SHOWN_FIELDS:,} more" * (len(unused) > _SHOWN_FIELDS)
            notes.append(
                f"not used: {', '.join(unused[:_SHOWN_FIELDS])}{more} beside the log, which may "
                "have verdicts. The log or another file has them, or these name none of its "
                "rollouts, cannot be read or have more than 64 MiB; --verdicts FILE takes them"
            )
        if self.num_equal:
            notes.append(
                f"{counted(self.num_equal, 'rollout')} equal to one of another file: they count "
                "as attempts of their own. --drop-equal takes them for copies"
            )
        if counts["missed"]:
            notes.append(
                f"{self.options.state} found nothing in {counted(counts['missed'], 'state')} of "
                f"{counts['steps']:,}: there the state is what the agent last saw"
            )
        if counts["empty"]:
            notes.append(
                f"{counted(counts['empty'], 'step')} with an empty action: the message has neither "
                "text nor a call that is known"
            )
        if counts["unjudged"]:
            numbers = ", ".join(list(self.candidates)[:_SHOWN_CANDIDATES]) or "none"
            option = self._option()
            hint = f". {option} takes one that all of them have" if option else ""
            notes.append(
                f"{counted(counts['unjudged'], 'rollout')} without a verdict: incomplete in the "
                "store, without credit. --success names a field or a threshold, --reward a number, "
                f"--verdicts a file with them; numbers and flags of these records: "
                f"{numbers}{hint}"
            )
        if counts["reward_of_success"]:
            notes.append(
                f"{counted(counts['reward_of_success'], 'rollout')} without a reward in the "
                "log: it is 1 for success and 0 otherwise"
            )
        if counts["turn_rewards"] and self.options.reward == "end":
            notes.append(
                f"{counted(counts['turn_rewards'], 'rollout')} with rewards of single turns, "
                "which were not used: --reward turns uses them"
            )
        if counts["unscored"] and self.options.score != "auto":
            notes.append(
                f"{counted(counts['unscored'], 'rollout')} without a score at {self.options.score}"
            )
        num_single = 0 if self.is_begin else sum(size == 1 for size in self.groups.values())
        if num_single and num_single == len(self.groups):
            notes.append(f"every group has one rollout, so no estimator can compare: {_REMEDY}")
        elif 2 * num_single > len(self.groups):
            notes.append(
                f"{num_single:,} of {len(self.groups):,} groups have one rollout, which no "
                f"estimator can compare: if rollouts of one task are apart, {_REMEDY}"
            )
        return notes


def _add(counts: dict[str, int], others: Mapping[str, int]) -> None:
    for name, number in others.items():
        counts[name] = counts.get(name, 0) + number


def _name(rows: list[BadRow], others: list[BadRow]) -> None:
    rows += others[: _KEPT_BAD_ROWS - len(rows)]
