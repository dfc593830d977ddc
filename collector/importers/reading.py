"""Read a log: files to records, records to rollouts, rollouts to trajectories."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, cast

from graphcredit.collector.importers.images.kept import with_images
from graphcredit.collector.importers.images.neighbour_files import ImageFolder
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.collector.importers.messages.rollout import Omission
from graphcredit.collector.importers.messages.values import MALFORMED, RecordError, fields_of
from graphcredit.collector.importers.report import Tally
from graphcredit.collector.importers.rules.outcomes import Rules, rules_of
from graphcredit.collector.importers.sources import LogFile, LogSource
from graphcredit.collector.importers.steps import trajectory_of
from graphcredit.collector.importers.table import LogFormat, format_named, recognise
from graphcredit.collector.importers.trajectory import ImportedTrajectory, Origin
from graphcredit.store.errors import StepRefusedError

RECOGNISED_WITHIN = 100
"""Records of a file by which its format is recognised: the first rollouts may have failed."""

NESTED_IN = (
    *("rollouts", "trajectories", "episodes", "samples", "records", "results"),
    *("rows", "items", "examples", "data"),
)
"""Fields whose list may be the records of a file, such as `{"rollouts": [...]}`."""


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
    """Yield the trajectories of a file, whose format one of its first records decides."""
    records = read_records(file.path, log.options.record_bytes)
    begin, row = recognised(records, log)
    logged = chain(begin, records)
    if row is None:
        nested = _nested(begin, log)
        if nested is None:
            _refuse_file(file, begin, tally)
            return
        row, logged = nested.format, nested.records(logged)
    tally.read_file(row.name)
    for record in row.gather(logged) if row.gather else logged:
        yield from trajectories_of_record(record, file, row, rules, tally)


def recognised(records: Iterator[Record], log: LogSource) -> tuple[list[Record], LogFormat | None]:
    """Return the first records of a file, and its format if they tell.

    A file of a folder is read as the format that was named only if a record looks like it.
    """
    begin: list[Record] = []
    named = None if log.options.format is None else format_named(log.options.format)
    for record in islice(records, RECOGNISED_WITHIN):
        begin.append(record)
        if isinstance(record.value, RowError):
            continue
        row = named or recognise(record.value, record.path)
        is_like = row is not None and row.is_row(record.value, record.path)
        if is_like or (row is not None and not log.is_folder):
            return begin, row if is_like or _nested([record], log) is None else None
    return begin, None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Nested:
    """Where the records of a file are: in a list of an object around them."""

    field: str
    format: LogFormat

    def records(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records of the lists; what has no such list is a record itself."""
        for record in records:
            items = _list(record, self.field)
            if items is None:
                yield record
                continue
            before = f"{record.place}, " if record.place else ""
            for number, item in enumerate(items, start=1):
                place = f"{before}item {number} of {self.field}"
                yield Record(path=record.path, place=place, value=item, share=record.share)


def _nested(begin: list[Record], log: LogSource) -> _Nested | None:
    """Return where the records in the first objects are; None unless one list of one has some."""
    for record in begin:
        formats = {name: row for name in NESTED_IN if (row := _format_within(record, name))}
        if len(formats) == 1:
            ((field, row),) = formats.items()
            is_wanted = log.options.format in (None, row.name)
            return _Nested(field=field, format=row) if is_wanted else None
    return None


def _format_within(record: Record, name: str) -> LogFormat | None:
    items = islice(_list(record, name) or [], RECOGNISED_WITHIN)
    return next(filter(None, (recognise(item, record.path) for item in items)), None)


def _list(record: Record, name: str) -> list[Any] | None:
    items = fields_of(record.value).get(name)
    return cast("list[Any]", items) if isinstance(items, list) else None


def _refuse_file(file: LogFile, begin: list[Record], tally: Tally) -> None:
    """Tally a file that is no log, by its first records."""
    broken = [record for record in begin if isinstance(record.value, RowError)]
    for record in broken:
        tally.refuse(record.where, str(record.value))
    if not broken:
        tally.sums.other_files.append(str(file.path))


def trajectories_of_record(
    record: Record, file: LogFile, row: LogFormat, rules: Rules, tally: Tally
) -> Iterator[ImportedTrajectory]:
    """Yield the trajectories of a record of a known format, and tally everything else."""
    folder = ImageFolder(root=file.root, base=file.path.parent)
    origin = Origin(
        file=file.number, where=record.where, num_bytes_read=file.num_bytes_read(record.share)
    )
    tally.sums.num_records += 1
    try:
        if isinstance(record.value, RowError):
            raise record.value
        for item in row.read(record):
            if isinstance(item, Omission):
                tally.leave_out(item)
                continue
            rollout, lost = with_images(item, folder)
            for image in lost:
                tally.lose_image(record.where, image)
            try:
                made = trajectory_of(rollout, rules, origin)
            except (RecordError, StepRefusedError) as error:  # a record may have more rollouts
                tally.refuse(record.where, str(error))
                continue
            if made is None:
                tally.leave_out(Omission(reason="record without a message of the policy"))
            else:
                yield made
    except (RecordError, RowError, StepRefusedError) as error:
        tally.refuse(record.where, str(error))
    except (*MALFORMED, OverflowError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else repr(error)
        tally.refuse(record.where, f"it must be a record of the format {row.name}: {reason}")
