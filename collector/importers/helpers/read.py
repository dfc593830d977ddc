"""Read a log in batches: its large files in pieces, by several processes."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain, groupby

from graphcredit.collector.importers.batches import TrajectoryBatch, batches_of
from graphcredit.collector.importers.helpers.pieces import LogPiece, pieces_of, read_pieces
from graphcredit.collector.importers.logs.files import LINES
from graphcredit.collector.importers.logs.jsonl import is_indented
from graphcredit.collector.importers.logs.names import named
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.collector.importers.reading import (
    format_to_read,
    refuse_folders,
    trajectories_of_file,
)
from graphcredit.collector.importers.recognition import Recognised, recognised
from graphcredit.collector.importers.report import Tally
from graphcredit.collector.importers.rules.judged import refuse_unmatched
from graphcredit.collector.importers.rules.outcomes import rules_of
from graphcredit.collector.importers.rules.relative import is_relative, threshold_of
from graphcredit.collector.importers.sources import LogFile, LogSource
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.workers.pool import WorkerPool, num_processors

HELPED_BYTES = 32 << 20
"""Bytes of a JSONL file from which other processes read it: they take half a second to start."""

MOST_WORKERS = 4

_PIECES_AT_ONCE = 2
"""One being read and one waiting, so that no worker waits for the import."""


def with_threshold(log: LogSource) -> LogSource:
    """Return a log whose relative rule of success is a threshold; the log is read for it.

    Raises:
        OptionError: The share of `top:SHARE` is not between 0 and 1.
        InputError: No record has a reward.
    """
    rule = log.options.success
    if not is_relative(rule):
        return log
    threshold_of(rule, (0.0,))
    with closing(read_batches(log, Tally(options=log.options))) as batches:
        returns = [made.total for batch in batches for made in batch.entries]
    threshold = threshold_of(rule, [one for one in returns if one is not None])
    return replace(log, options=log.options.model_copy(update={"success": threshold}))


def refuse_unmatched_verdicts(log: LogSource, first: Sequence[ImportedTrajectory]) -> None:
    """Raise InputError if `--verdicts` has none of a trajectory of a log, which is read for it."""

    def has_others() -> bool:
        with closing(read_batches(log, Tally(options=log.options))) as batches:
            return any(made.verdict.judged_as for batch in batches for made in batch.entries)

    if log.options.verdicts is not None:
        refuse_unmatched(log.options.verdicts, first, has_others)


def read_batches(log: LogSource, tally: Tally) -> Generator[TrajectoryBatch]:
    """Yield the trajectories of a log in its order, and tally everything else.

    What a worker that dies was reading is read by another one, up to three times
    (`store/workers/pool.py`).

    Raises:
        EngineError: A piece was lost with four workers.
    """
    refuse_folders(log, tally)
    with_formats = ((file, _known_in_pieces(file, log, tally)) for file in log.files)
    for is_large, files in groupby(with_formats, lambda pair: pair[1] is not None):
        if is_large:
            yield from _in_pieces(files, log, tally)
        else:
            yield from _as_a_whole((file for file, _ in files), log, tally)


def _known_in_pieces(file: LogFile, log: LogSource, tally: Tally) -> Recognised | None:
    """Return what is known of a file that is read in pieces; None if it is read as a whole."""
    is_long = file.path.suffix.lower() in LINES and file.size >= HELPED_BYTES
    if not is_long or is_indented(file.path):
        return None
    records = read_records(file.path, log.options.record_bytes)
    records = named(records, log.names, file.place.path, tally.columns)
    known = recognised(records, log)
    is_whole = known.format is None or known.format.gather or known.field is not None
    return None if is_whole else known


def _as_a_whole(
    files: Iterable[LogFile], log: LogSource, tally: Tally
) -> Iterator[TrajectoryBatch]:
    rules = rules_of(log.options)
    trajectories = (trajectories_of_file(file, log, rules, tally) for file in files)
    return batches_of(chain.from_iterable(trajectories))


def _in_pieces(
    files: Iterable[tuple[LogFile, Recognised | None]], log: LogSource, tally: Tally
) -> Iterator[TrajectoryBatch]:
    def pieces() -> Iterator[LogPiece]:
        for file, known in files:
            assert known is not None, "only files of a known format are read in pieces"
            row = format_to_read(known, file, tally)
            if row is not None:
                yield from pieces_of(file, row.name, log.options.record_bytes)

    num_workers = min(num_processors(), MOST_WORKERS)
    pool = WorkerPool(
        work=partial(read_pieces, log.options),
        num_workers=num_workers if num_workers > 1 else 0,
        pieces_at_once=_PIECES_AT_ONCE,
    )
    with closing(pool.in_order(pieces())) as readings:
        for reading in readings:
            tally.take(reading.tally)
            yield reading.batch
