"""Pieces of a JSONL file: whole lines, which any process can read by itself."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphcredit.collector.importers.batches import TrajectoryBatch, one_batch
from graphcredit.collector.importers.logs.files import MAX_RECORD_BYTES
from graphcredit.collector.importers.logs.jsonl import LineBlock, records_of_block
from graphcredit.collector.importers.logs.names import renamed
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.reading import trajectories_of_record
from graphcredit.collector.importers.report import Tally
from graphcredit.collector.importers.rules.outcomes import rules_of
from graphcredit.collector.importers.sources import LogFile
from graphcredit.collector.importers.table import format_named

PIECE_BYTES = 2 << 20
"""Bytes of a piece, but for its last line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Some lines of a file."""

    file: LogFile
    format: str
    """Name of its format."""
    start: int
    """Bytes before the first line."""
    num_bytes: int
    first_line: int
    """Number of the first line in the file, from 1."""
    is_too_long: bool = False
    """Whether it stands for one line that is longer than the limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PieceRead:
    """What a piece became."""

    batch: TrajectoryBatch
    tally: Tally
    """What else was counted in it."""


def pieces_of(file: LogFile, format_: str, limit: int = MAX_RECORD_BYTES) -> Iterator[Piece]:
    """Yield the pieces of a file, in order; a line of more bytes than the limit has none."""
    start, line = 0, 1
    with file.path.open("rb") as opened:
        while lines := opened.read(PIECE_BYTES):
            if not lines.endswith(b"\n"):
                lines += opened.readline(limit + 1)
            end = lines.rfind(b"\n") + 1
            is_too_long = len(lines) - end > limit
            if not is_too_long:
                end = len(lines)
            if end:
                yield Piece(file=file, format=format_, start=start, num_bytes=end, first_line=line)
            start, line = start + end, line + lines.count(b"\n")
            if is_too_long:
                yield Piece(
                    file=file,
                    format=format_,
                    start=start,
                    num_bytes=0,
                    first_line=line,
                    is_too_long=True,
                )
                while not (begin := opened.readline(PIECE_BYTES)).endswith(b"\n") and begin:
                    pass
                start, line = opened.tell(), line + 1


def read_pieces(
    options: ImportOptions, pieces: Iterator[Piece]
) -> Iterator[tuple[Piece, PieceRead]]:
    """Yield each piece with what it became; it is the work of a worker."""
    gc.disable()  # records have no cycles, and looking for them takes a fifth of the time
    return ((piece, _read(piece, options)) for piece in pieces)


def _read(piece: Piece, options: ImportOptions) -> PieceRead:
    block = LineBlock(
        lines=_lines(piece.file.path, piece.start, piece.num_bytes),
        first_line=piece.first_line,
        share=min((piece.start + piece.num_bytes) / max(piece.file.size, 1), 1.0),
        is_too_long=piece.is_too_long,
    )
    row, rules, tally = format_named(piece.format), rules_of(options), Tally(options=options)
    trajectories = (
        imported
        for record in records_of_block(piece.file.path, block, options.record_bytes)
        for imported in trajectories_of_record(
            renamed(record, options.names, tally.columns), piece.file, row, rules, tally
        )
    )
    return PieceRead(batch=one_batch(trajectories), tally=tally)


def _lines(path: Path, start: int, num_bytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(num_bytes)
