"""Read a log in batches: its large files in pieces, with the help of other processes."""

from collections.abc import Generator, Iterator
from itertools import chain, groupby

from graphcredit.collector.importers.batches import TrajectoryBatch, batches_of
from graphcredit.collector.importers.helpers.crew import Crew
from graphcredit.collector.importers.helpers.pieces import pieces_of
from graphcredit.collector.importers.logs.files import LINES
from graphcredit.collector.importers.logs.jsonl import is_indented
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.collector.importers.reading import (
    recognised,
    refuse_folders,
    trajectories_of_file,
)
from graphcredit.collector.importers.report import Tally
from graphcredit.collector.importers.rules.outcomes import rules_of
from graphcredit.collector.importers.sources import Log, LogFile

HELPED_BYTES = 32 << 20
"""Bytes of a JSONL file from which other processes help: they take half a second to start."""


def read_batches(log: Log, tally: Tally) -> Generator[TrajectoryBatch]:
    """Yield the trajectories of a log in its order, and tally everything else."""
    refuse_folders(log, tally)
    crew: Crew | None = None
    try:
        for is_large, files in groupby(log.files, _is_large):
            if is_large:
                crew = crew or Crew(log.options)
                for file in files:
                    yield from _with_help(file, log, tally, crew)
            else:
                yield from _alone(files, log, tally)
    finally:
        if crew is not None:
            crew.end()


def _is_large(file: LogFile) -> bool:
    is_long = file.path.suffix.lower() in LINES and file.size >= HELPED_BYTES
    return is_long and not is_indented(file.path)


def _alone(files: Iterator[LogFile], log: Log, tally: Tally) -> Iterator[TrajectoryBatch]:
    rules = rules_of(log.options)
    found = (trajectories_of_file(file, log, rules, tally) for file in files)
    return batches_of(chain.from_iterable(found))


def _with_help(file: LogFile, log: Log, tally: Tally, crew: Crew) -> Iterator[TrajectoryBatch]:
    _, row = recognised(read_records(file.path), log)
    if row is None or row.gather:
        yield from _alone(iter([file]), log, tally)
    else:
        tally.read_file(row.name)
        for found in crew.read(pieces_of(file, row.name)):
            tally.take(found.tally)
            yield found.batch
