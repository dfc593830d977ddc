"""Read a log: files to records, records to rollouts, rollouts to trajectories."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from graphcredit.collector.importers.images.beside import ImageFolder
from graphcredit.collector.importers.images.rollouts import with_images
from graphcredit.collector.importers.logs.messages import LoggedRollout, Omission
from graphcredit.collector.importers.logs.records import Record, RowError, read_records
from graphcredit.collector.importers.logs.values import RecordError
from graphcredit.collector.importers.report import Tally
from graphcredit.collector.importers.rules.chosen import Rules, rules_of
from graphcredit.collector.importers.sources import Log, LogFile, format_of
from graphcredit.collector.importers.steps import trajectory_of
from graphcredit.collector.importers.table import LogFormat
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.collector.importers.wrapped import Wrapped, wrapped
from graphcredit.store.errors import StepRefusedError

RECOGNISED_WITHIN = 100
"""Records of a file by which its format is recognised: the first rollouts may have failed."""

_MALFORMED = (
    *(AttributeError, IndexError, KeyError, TypeError, ValueError),
    *(OverflowError, RecursionError),
)
"""What a reader may raise of a record whose parts have other types than its format says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """A trajectory, and where it was read."""

    file: int
    """Index of its file in the log."""
    where: str
    """File and place, for messages."""
    num_bytes_read: float
    """Bytes of the log up to here."""
    trajectory: ImportedTrajectory


def read_trajectories(log: Log, tally: Tally) -> Generator[Imported]:
    """Yield the trajectories of a log, and tally everything else."""
    rules = rules_of(log.options)
    refuse_folders(log, tally)
    for file in log.files:
        yield from trajectories_of_file(file, log, rules, tally)


def refuse_folders(log: Log, tally: Tally) -> None:
    """Tally the folders that cannot be read."""
    for folder, reason in log.unreadable:
        tally.refuse(folder, reason)


def trajectories_of_file(file: LogFile, log: Log, rules: Rules, tally: Tally) -> Iterator[Imported]:
    """Yield the trajectories of a file, whose format one of its first records decides."""
    records = read_records(file.path)
    begin, row = recognised(records, log)
    logged = chain(begin, records)
    if row is None:
        around = _around(begin, log)
        if around is None:
            not_recognised(file, begin, tally)
            return
        row, logged = around.format, around.records(logged)
    tally.num_files[row.name] += 1
    for record in row.gather(logged) if row.gather else logged:
        yield from trajectories_of_record(record, file, row, rules, tally)


def recognised(records: Iterator[Record], log: Log) -> tuple[list[Record], LogFormat | None]:
    """Return the first records of a file, and its format if they tell."""
    begin: list[Record] = []
    for record in islice(records, RECOGNISED_WITHIN):
        begin.append(record)
        row = None if isinstance(record.value, RowError) else format_of(record, log)
        if row is not None:
            is_around = not row.is_row(record.value, record.path) and _around([record], log)
            return begin, None if is_around else row
    return begin, None


def _around(begin: list[Record], log: Log) -> Wrapped | None:
    """Return in which field the records of a file are, if they are in objects around them."""
    found = next((each for record in begin if (each := wrapped(record)) is not None), None)
    forced = log.options.format
    return found if found is None or forced in (None, found.format.name) else None


def not_recognised(file: LogFile, begin: list[Record], tally: Tally) -> None:
    """Tally a file that is no log, by its first records."""
    broken = [record for record in begin if isinstance(record.value, RowError)]
    for record in broken:
        tally.refuse(record.where, str(record.value))
    if not broken:
        tally.other_files.append(str(file.path))


def trajectories_of_record(
    record: Record, file: LogFile, row: LogFormat, rules: Rules, tally: Tally
) -> Iterator[Imported]:
    """Yield the trajectories of a record of a known format."""
    folder = ImageFolder(root=file.root, base=file.path.parent)
    for made in _of_record(row, record, folder, rules, tally):
        yield Imported(
            file=file.number,
            where=record.where,
            num_bytes_read=file.num_bytes_read(record.share),
            trajectory=made,
        )


def _of_record(
    row: LogFormat, record: Record, folder: ImageFolder, rules: Rules, tally: Tally
) -> Iterator[ImportedTrajectory]:
    tally.num_records += 1
    try:
        if isinstance(record.value, RowError):
            raise record.value
        for item in row.read(record):
            if isinstance(item, Omission):
                tally.leave_out(item)
                continue
            try:
                made = trajectory_of(_seen(item, record, folder, tally), rules)
            except (RecordError, StepRefusedError) as error:  # a record may have more rollouts
                tally.refuse(record.where, str(error))
                continue
            if made is None:
                tally.leave_out(Omission(reason="record without a message of the policy"))
            else:
                yield made
    except (RecordError, RowError, StepRefusedError) as error:
        tally.refuse(record.where, str(error))
    except _MALFORMED as error:
        found = f"it has no {error}" if isinstance(error, KeyError) else repr(error)
        tally.refuse(record.where, f"it must be a record of the format {row.name}: {found}")


def _seen(
    rollout: LoggedRollout, record: Record, folder: ImageFolder, tally: Tally
) -> LoggedRollout:
    """Return a rollout with its images, and tally those that are lost."""
    found, lost = with_images(rollout, folder)
    for image in lost:
        tally.lose_image(record.where, image)
    return found
