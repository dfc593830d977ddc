"""Read a log: files to records, records to rollouts, rollouts to trajectories."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from graphcredit.collector.importers.formats.harbor import in_trial, is_native
from graphcredit.collector.importers.formats.step_columns import FIELDS, columns_of_log
from graphcredit.collector.importers.images.kept import with_images
from graphcredit.collector.importers.images.neighbour_files import ImageFolder
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.jsonl import text_of_lines
from graphcredit.collector.importers.logs.names import named, names_in_path
from graphcredit.collector.importers.logs.places import row_of
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.collector.importers.looks import looks_of
from graphcredit.collector.importers.messages.agreement import without_agreement
from graphcredit.collector.importers.messages.answers import sources_of
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Omission, are_plain
from graphcredit.collector.importers.messages.values import (
    MALFORMED,
    RecordError,
    as_text,
    fields_of,
    is_unique,
    joined,
    short,
)
from graphcredit.collector.importers.recognition import Recognised, recognised
from graphcredit.collector.importers.rules.outcomes import Rules, rules_of
from graphcredit.collector.importers.sources import LogFile, LogSource
from graphcredit.collector.importers.steps import trajectory_of
from graphcredit.collector.importers.table import LogFormat
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import ImportedTrajectory, Origin
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.plural import counted

_NAMED_FIELDS = 5
"""Fields that the refusal of a file names."""


def read_trajectories(log: LogSource, tally: Tally) -> Generator[ImportedTrajectory]:
    """Yield the trajectories of a log, and tally everything else."""
    rules = rules_of(log.options)
    refuse_folders(log, tally)
    for file in log.files:
        yield from trajectories_of_file(file, log, rules, tally)


def refuse_folders(log: LogSource, tally: Tally) -> None:
    """Tally the folders that cannot be read."""
    for folder, reason in log.unreadable:
        tally.refuse(folder, reason)


def trajectories_of_file(
    file: LogFile, log: LogSource, rules: Rules, tally: Tally
) -> Iterator[ImportedTrajectory]:
    """Yield the trajectories of a file, whose format its first records decide."""
    records = read_records(file.path, log.options.record_bytes)
    records = named(records, log.names, file.place.path, tally.columns)
    known = recognised(records, log)
    row = format_to_read(known, file, tally)
    if row is None:
        return
    reader = FileReader(file=file, row=row, rules=rules, tally=tally, known=known)
    rollouts = chain.from_iterable(
        ((rollout, record) for rollout in reader.rollouts(record))
        for record in reader.gathered(known.records(records))
    )
    first = list(islice(rollouts, 2))
    if len(first) == 1:
        only, record = first[0]
        first[0] = replace(only, place=replace(only.place, is_only=True)), record
    for rollout, record in chain(first, rollouts):
        yield from reader.trajectory(rollout, record)


def format_to_read(known: Recognised, file: LogFile, tally: Tally) -> LogFormat | None:
    """Tally a file, and return the format to read it as; None if it is not to be read."""
    row, coverage = known.format, known.coverage
    if row is None or coverage is None:
        _refuse_file(file, known.begin, tally)
        return None
    if row.name != "atif" and is_native(file.path, file.root):
        tally.leave_out(Omission(reason="log of an agent beside its rollout in ATIF"))
        return None
    limit = tally.options.max_unread
    if coverage.unread_share * 100 > limit and not row.keeps_rest:
        tally.refuse(
            str(file.path),
            f"at most {limit:g} % of the text may stay unread: as {row.name}, "
            f"{coverage.unread_share:.0%} of its first {counted(coverage.num_records, 'record')} "
            f"would ({'; '.join(coverage.sentences()[:_NAMED_FIELDS])}). If those fields are no "
            "part of the conversation, --max-unread 100 imports the rest",
        )
        return None
    tally.read_file(row.name)
    return row


def _refuse_file(file: LogFile, begin: list[Record], tally: Tally) -> None:
    """Tally a file that is no log, by its first records."""
    broken = [record for record in begin if isinstance(record.value, RowError)]
    if broken and len(broken) == len(begin) and (text := text_of_lines(file.path)):
        tally.refuse(
            str(file.path),
            f"it must be JSON, CSV, Parquet or Arrow: it is text that begins with {text!r}. Write "
            "an object for each step (episode, step, state, action, reward, done) or for each "
            "rollout (messages, reward)",
        )
        return
    for record in broken:
        tally.refuse(record.where, str(record.value))
    if not broken:
        tally.sums.other_files.append(str(file.path))
        tally.look = tally.look or looks_of(begin)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileReader:
    """Reads the records of a file of a known format, and tallies everything else."""

    file: LogFile
    row: LogFormat
    rules: Rules
    tally: Tally
    known: Recognised | None = None
    """The records by which its format was recognised, and what it made of them."""

    def gathered(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records of the file, put together as its format does; tally why not."""
        if self.row.gather is None:
            yield from records
            return
        whole = Record(path=self.file.path, place="", value=None, share=1.0)
        with self._refusals(whole):
            yield from self.row.gather(records, self.tally.options.record_bytes)

    def trajectories(self, record: Record) -> Iterator[ImportedTrajectory]:
        """Yield the trajectories of a record."""
        for rollout in self.rollouts(record):
            yield from self.trajectory(rollout, record)

    def rollouts(self, record: Record) -> list[LoggedRollout]:
        """Return the rollouts of a record, and tally what it has besides."""
        self.tally.sums.num_records += 1
        rollouts: list[LoggedRollout] = []
        with self._refusals(record):
            if isinstance(record.value, RowError):
                raise record.value
            known = None if self.known is None else self.known.read.get(id(record))
            for item in known or self.row.read(record):
                if isinstance(item, Omission):
                    self.tally.leave_out(item)
                else:
                    item = without_agreement(in_trial(item, self.file.path, self.file.root))
                    rollouts.append(_in_file(item, record, self.file, self.rules))
        if rollouts:
            self.tally.cover(self.row, record.value, rollouts)
        is_one = len(rollouts) == 1
        is_loose = self.row.is_loose
        return [with_own_names(each, is_one=is_one) if is_loose else each for each in rollouts]

    def trajectory(self, item: LoggedRollout, record: Record) -> Iterator[ImportedTrajectory]:
        """Yield the trajectory of a rollout, if it is one: others of the record may be sound."""
        folder = ImageFolder(root=self.file.root, base=self.file.path.parent)
        read = self.file.num_bytes_read(record.share)
        origin = Origin(file=self.file.number, where=record.where, num_bytes_read=read)
        made = None
        with self._refusals(record):
            rollout, lost = with_images(item, folder)
            for image in lost:
                self.tally.lose_image(record.where, image)
            made = trajectory_of(rollout, self.rules, origin)
            if made is None:
                agent = self.rules.options.agent
                of = "policy" if agent is None else f"agent {agent!r}"
                self.tally.leave_out(Omission(reason=f"record without a message of the {of}"))
        if made is not None:
            yield made

    @contextmanager
    def _refusals(self, record: Record) -> Generator[None]:
        """Tally an error about a record, whoever raises it."""
        try:
            yield
        except (RecordError, RowError, StepRefusedError) as error:
            self.tally.refuse(record.where, str(error))
        except (*MALFORMED, OverflowError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else repr(error)
            of = f"it must be a record of the format {self.row.name}: {reason}"
            self.tally.refuse(record.where, of)


def _in_file(rollout: LoggedRollout, record: Record, file: LogFile, rules: Rules) -> LoggedRollout:
    """Return a rollout with its place, and what `--columns` calls parts of its path."""
    names = rules.options.names if rules.options.columns else {}
    parts = names_in_path(names, file.place.path)
    task, trajectory = parts.get("task_id"), parts.get("trajectory_id")
    if task is not None:
        rollout = replace(rollout, task=task, group=task)
    if trajectory is not None:
        rollout = replace(rollout, label=joined(task, trajectory))
    if not names.keys().isdisjoint(("run_id", "iteration")):
        rollout = _in_run(rollout, {**fields_of(record.value), **parts}, names)
    number = None if file.rows_before is None else row_of(record.where)
    row = "" if number is None else str(number - (file.rows_before or 0))
    return replace(rollout, place=replace(file.place, row=row) if row else file.place)


def _in_run(
    rollout: LoggedRollout, fields: Mapping[str, Any], names: Mapping[str, str]
) -> LoggedRollout:
    """Return a rollout in the run and the iteration that `--columns` names."""
    run, iteration = (fields.get(name) for name in ("run_id", "iteration"))
    if "run_id" in names and run is not None:
        rollout = replace(rollout, run=as_text(run))
    if "iteration" not in names or iteration is None:
        return rollout
    if not str(iteration).isdecimal():
        what = f"--columns iteration={names['iteration']} must be a whole number"
        raise RecordError(f"{what}: got {short(iteration)}")
    return replace(rollout, iteration=int(iteration))


def with_own_names(rollout: LoggedRollout, *, is_one: bool) -> LoggedRollout:
    """Return a rollout with what its record and its answers name as a store does.

    Its id is one only beside a run or an iteration: other programs count from 0 for each task.
    """
    if rollout.is_steps:
        return rollout
    others = () if are_plain(rollout.messages) else rollout.messages
    answers = [sources_of(message)[-1] for message in others if message.is_answer]
    if not all(map(FIELDS.isdisjoint, answers)):
        columns, broken = columns_of_log(answers)
        left_out = {**rollout.left_out, **broken}
        note = f"the answers have columns of steps: {', '.join(columns)}" if columns else ""
        notes = (*rollout.notes, *filter(None, [note]))
        rollout = replace(rollout, columns=columns, left_out=left_out, notes=notes)
    run, iteration, own = map(rollout.record.get, ("run_id", "iteration", "trajectory_id"))
    if run is None and iteration is None and own is None:
        return rollout
    if rollout.run is None and isinstance(run, str) and not is_unique(run):
        rollout = replace(rollout, run=run)
    if rollout.iteration is None and type(iteration) is int:
        rollout = replace(rollout, iteration=iteration)
    if rollout.trajectory_id is None and isinstance(own, str) and is_one:
        if run is not None or iteration is not None:
            return replace(rollout, trajectory_id=own)
        if rollout.label in ("", rollout.task):
            return replace(rollout, label=joined(rollout.task, own))
    return rollout
