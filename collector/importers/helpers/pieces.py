"""Pieces of a JSONL file: whole lines, which any process can read by itself."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from graphcredit.collector.importers.batches import TrajectoryBatch, one_batch
from graphcredit.collector.importers.logs.files import MAX_RECORD_BYTES
from graphcredit.collector.importers.logs.jsonl import LineBlock, blocks_of, records_of_block
from graphcredit.collector.importers.logs.names import renamed
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.reading import trajectories_of_record
from graphcredit.collector.importers.report import Tally
from graphcredit.collector.importers.rules.outcomes import rules_of
from graphcredit.collector.importers.sources import LogFile
from graphcredit.collector.importers.table import format_named


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPiece:
    """Some lines of a file."""

    file: LogFile
    format: str
    """Name of its format."""
    number: int
    """Which piece of the file it is."""
    block: LineBlock | None = field(compare=False)
    """None after it was read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PieceRead:
    """What a piece became."""

    batch: TrajectoryBatch
    tally: Tally
    """What else was counted in it."""


def pieces_of(file: LogFile, format_: str, limit: int = MAX_RECORD_BYTES) -> Iterator[LogPiece]:
    """Yield the pieces of a file, in order."""
    for number, block in enumerate(blocks_of(file.path, limit)):
        yield LogPiece(file=file, format=format_, number=number, block=block)


def read_pieces(
    options: ImportOptions, pieces: Iterator[LogPiece]
) -> Iterator[tuple[LogPiece, PieceRead]]:
    """Yield each piece with what it became; it is the work of a worker."""
    gc.disable()  # records have no cycles, and looking for them takes a fifth of the time
    return ((replace(piece, block=None), _read(piece, options)) for piece in pieces)


def _read(piece: LogPiece, options: ImportOptions) -> PieceRead:
    assert piece.block is not None, "a piece is read once"
    row, rules, tally = format_named(piece.format), rules_of(options), Tally(options=options)
    path, names = piece.file.place.path, options.names
    records = records_of_block(piece.file.path, piece.block, options.record_bytes)
    trajectories = (
        imported
        for record in records
        for imported in trajectories_of_record(
            renamed(record, names, path, tally.columns), piece.file, row, rules, tally
        )
    )
    return PieceRead(batch=one_batch(trajectories), tally=tally)
