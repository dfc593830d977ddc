"""Pieces of a log, which any process can read by itself: lines of a file, or whole small files."""

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from graphcredit.collector.importers.batches import TrajectoryBatch, one_batch
from graphcredit.collector.importers.logs.jsonl import LineBlock, records_of_block
from graphcredit.collector.importers.logs.names import renamed
from graphcredit.collector.importers.reading import FileReader, trajectories_of_file
from graphcredit.collector.importers.rules.outcomes import Rules, rules_of
from graphcredit.collector.importers.sources import LogFile, LogSource
from graphcredit.collector.importers.table import format_named
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import ImportedTrajectory


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPiece:
    """Some files of a log, or some lines of one."""

    number: int
    """Its place among the pieces that are read together."""
    files: tuple[LogFile, ...] = field(default=(), compare=False)
    """None after it was read."""
    format: str = field(default="", compare=False)
    """Of lines: the name of their format."""
    block: LineBlock | None = field(default=None, compare=False)
    """The lines; None where the files are whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PieceRead:
    """What a piece became."""

    batch: TrajectoryBatch
    tally: Tally
    """What else was counted in it."""


def read_pieces(log: LogSource, pieces: Iterator[LogPiece]) -> Iterator[tuple[LogPiece, PieceRead]]:
    """Yield each piece of a log with what it became; it is the work of a worker."""
    rules = rules_of(log.options)
    with without_cycles():
        for piece in pieces:
            tally = Tally(options=log.options)
            batch = one_batch(_trajectories(piece, log, rules, tally))
            yield LogPiece(number=piece.number), PieceRead(batch=batch, tally=tally)


def _trajectories(
    piece: LogPiece, log: LogSource, rules: Rules, tally: Tally
) -> Iterator[ImportedTrajectory]:
    if piece.block is None:
        for file in piece.files:
            yield from trajectories_of_file(file, log, rules, tally)
        return
    (file,) = piece.files
    row = format_named(piece.format)
    reader = FileReader(file=file, row=row, rules=rules, tally=tally)
    for record in records_of_block(file.path, piece.block, log.options.record_bytes):
        known = renamed(record, log.names, file.place.path, tally.columns)
        yield from reader.trajectories(known)


@contextmanager
def without_cycles() -> Generator[None]:
    """Do not look for cycles of objects: records have none, and it takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
