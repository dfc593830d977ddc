"""Read a log in batches: pieces of it, perhaps by several processes."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, count, groupby, islice
from pathlib import Path

from graphcredit.collector.importers.batches import TrajectoryBatch, batches_of
from graphcredit.collector.importers.helpers.pieces import LogPiece, read_pieces
from graphcredit.collector.importers.logs.files import LINES
from graphcredit.collector.importers.logs.jsonl import blocks_of, is_indented
from graphcredit.collector.importers.logs.names import named
from graphcredit.collector.importers.logs.places import row_of
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.collector.importers.reading import (
    format_to_read,
    read_trajectories,
    refuse_folders,
    trajectories_of_file,
)
from graphcredit.collector.importers.recognition import Recognised, recognised
from graphcredit.collector.importers.rules.judged import is_named, refuse_unmatched
from graphcredit.collector.importers.rules.outcomes import RETURN, rules_of
from graphcredit.collector.importers.rules.verdicts import verdicts_of
from graphcredit.collector.importers.sources import LogFile, LogSource
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.errors import OptionError
from graphcredit.store.near_names import must_be_one_of
from graphcredit.store.workers.pool import ENGINES, WorkerPool, num_processes, num_processors
from graphcredit.store.workers.ray import RayPool, connect

HELPED_BYTES, HELPED_FILES = 32 << 20, 1_000
"""Bytes, or files, of a log from which other processes read it, unless the engine says how many:
they take half a second to start."""

MOST_WORKERS = 4

FIRST = 200
"""Rollouts by which it is decided whether the rewards of a log are wins."""

_PIECES_AT_ONCE = 2
"""One being read and one waiting, so that no worker waits for the import."""

PIECE_BYTES, _PIECE_FILES = 1 << 20, 100
"""Bytes, or files, at which a piece of small files is full."""

SMALL_BYTES = 8 << 20
"""Bytes up to which a file is read as a whole by any process."""


def with_success_rule(log: LogSource) -> LogSource:
    """Return a log of which no reward is a win, if one of its first rollouts has another reward."""
    if log.options.success != "auto":
        return log
    with closing(read_trajectories(log, Tally(options=log.options))) as trajectories:
        is_by_return = any(made.verdict.by == RETURN for made in islice(trajectories, FIRST))
    return log.with_options(success="returns") if is_by_return else log


def refuse_unmatched_verdicts(log: LogSource, first: Sequence[ImportedTrajectory]) -> None:
    """Raise InputError if `--verdicts` has none of a trajectory of a log, which is read for it."""

    def has_others() -> bool:
        with closing(read_batches(log, Tally(options=log.options))) as batches:
            return any(is_named(made) for batch in batches for made in batch.entries)

    if log.options.verdicts is not None:
        refuse_unmatched(log.options.verdicts, first, has_others)


def with_rows(log: LogSource) -> LogSource:
    """Return a log of one file whose rollouts are named by their rows, if verdicts are.

    They are if they name nothing else of the log, which is read for it, and have just its rows.
    """
    path = log.options.verdicts
    if path is None or len(log.files) != 1 or not (numbers := verdicts_of(path).rows):
        return log
    rows: set[int] = set()
    with closing(read_batches(log, Tally(options=log.options))) as batches:
        for made in (made for batch in batches for made in batch.entries):
            number = row_of(made.origin.where)
            if made.verdict.judged_as or number is None:
                return log
            rows.add(number)
    before = min(rows, default=0) - min(numbers)
    if {row - before for row in rows} != numbers:
        return log
    return replace(log, files=tuple(replace(file, rows_before=before) for file in log.files))


_Kind = tuple[LogFile, Recognised | None, bool]
"""A file, what is known of it if it is read line by line, and whether it is read alone."""


Engine = RayPool | int | None
"""A cluster, or a number of processes; None: as many as pay off."""


@contextmanager
def engine_of(engine: str) -> Generator[Engine]:
    """Yield the engine that a text such as local:2 or ray:HOST:PORT names.

    Raises:
        OptionError: The text names none.
        EngineError: The cluster does not answer.
        MissingDependencyError: The extra `ray` is not installed.
    """
    name, _, address = engine.partition(":")
    if name not in ENGINES:
        raise OptionError(must_be_one_of("--engine", ENGINES, name))
    if name == "ray":
        with connect(address or None) as cluster:
            yield cluster
    else:
        yield num_processes(engine)


def num_workers_for(log: LogSource, asked: int | None) -> int:
    """Return how many processes read a log besides this one; 0: this one reads it."""
    is_helped = log.num_bytes >= HELPED_BYTES or len(log.files) >= HELPED_FILES
    number = (min(num_processors(), MOST_WORKERS) if is_helped else 1) if asked is None else asked
    return number if number > 1 else 0


def read_batches(log: LogSource, tally: Tally, engine: Engine = None) -> Generator[TrajectoryBatch]:
    """Yield the trajectories of a log in its order, and tally everything else.

    Whoever reads, the pieces are the same, and so is all that is made of them. What a worker that
    dies was reading is read by another one, up to three times (`store/workers/pool.py`).

    Raises:
        EngineError: A piece was lost with four workers, or a machine does not see its files.
    """
    refuse_folders(log, tally)
    work = partial(read_pieces, replace(log, files=()))
    known = ((file, _known_in_lines(file, log, tally)) for file in log.files)
    of_kinds = ((file, lines, lines is None and file.size > SMALL_BYTES) for file, lines in known)
    for is_alone, files in groupby(of_kinds, lambda each: each[2]):
        if is_alone:
            yield from _as_a_whole((file for file, _, _ in files), log, tally)
            continue
        begin, has_more = _two_pieces(files)
        files = chain(begin, files)
        pieces = _pieces(((file, lines) for file, lines, _ in files), log, tally)
        if isinstance(engine, RayPool):
            answers = engine.in_order(work, pieces, _paths_of)
        else:
            number = num_workers_for(log, engine) if has_more else 0
            pool = WorkerPool(work=work, num_workers=number, pieces_at_once=_PIECES_AT_ONCE)
            answers = pool.in_order(pieces)
        with closing(answers) as readings:
            for reading in readings:
                tally.take(reading.tally)
                yield reading.batch


def _paths_of(piece: LogPiece) -> list[Path]:
    return [file.path for file in piece.files]


def _two_pieces(files: Iterator[_Kind]) -> tuple[list[_Kind], bool]:
    """Return the first files, and whether they make two pieces: one needs no other process."""
    begin: list[_Kind] = []
    num_bytes = 0
    for each in files:
        begin.append(each)
        num_bytes += each[0].size
        if num_bytes >= 2 * PIECE_BYTES or len(begin) >= 2 * _PIECE_FILES:
            return begin, True
    return begin, False


def _known_in_lines(file: LogFile, log: LogSource, tally: Tally) -> Recognised | None:
    """Return what is known of a file that is read line by line; None if it is read as a whole."""
    is_long = file.path.suffix.lower() in LINES and file.size > SMALL_BYTES
    if not is_long or is_indented(file.path):
        return None
    records = read_records(file.path, log.options.record_bytes)
    records = named(records, log.names, file.place.path, tally.columns)
    known = recognised(records, log)
    is_whole = known.format is None or known.format.gather or known.name is not None
    return None if is_whole else known


def _as_a_whole(
    files: Iterable[LogFile], log: LogSource, tally: Tally
) -> Iterator[TrajectoryBatch]:
    rules = rules_of(log.options)
    trajectories = (trajectories_of_file(file, log, rules, tally) for file in files)
    return batches_of(chain.from_iterable(trajectories))


def _pieces(
    files: Iterable[tuple[LogFile, Recognised | None]], log: LogSource, tally: Tally
) -> Iterator[LogPiece]:
    """Yield blocks of lines of large files, and small files together, in the order of the log."""
    numbers, together = count(), list[LogFile]()
    for file, known in files:
        if known is None:
            together.append(file)
        if together and (
            known is not None
            or len(together) == _PIECE_FILES
            or sum(each.size for each in together) >= PIECE_BYTES
        ):
            yield LogPiece(number=next(numbers), files=tuple(together))
            together = []
        row = None if known is None else format_to_read(known, file, tally)
        if row is not None:
            for block in blocks_of(file.path, log.options.record_bytes):
                number = next(numbers)
                yield LogPiece(number=number, files=(file,), format=row.name, block=block)
    if together:
        yield LogPiece(number=next(numbers), files=tuple(together))
