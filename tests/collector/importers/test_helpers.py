"""Large files are read in pieces by several processes: the store becomes the same."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from unittest.mock import patch

import pytest

from graphcredit.collector.importers.helpers import pieces, read
from graphcredit.collector.importers.logs import jsonl
from graphcredit.collector.importers.report import ImportReport
from tests.collector.importers.logs import WALKS, episode, said, walk, write_lines
from tests.collector.importers.read_back import imported, steps_of


def _log(folder: Path) -> Path:
    """Write files of two formats, with copies, bad rows, empty lines and text that is no ASCII."""
    rows = [walk("Küche", str(number % 7), trial=number % 20) for number in range(60)]
    runs = [walk("kitchen", run_id=f"r{number % 2}", trial=number) for number in range(20)]
    broken = ["{", "", {**WALKS[0], "messages": [said("wizard", "?")]}, {**WALKS[0], "reward": "x"}]
    write_lines(folder / "a.jsonl", *rows[:30], *broken, *rows[20:], *runs)
    write_lines(folder / "b.jsonl", *rows[:5], walk("x" * 9000), walk("last"))
    write_lines(folder / "t.jsonl", *[episode(f"t{number % 12}") for number in range(14)])
    write_lines(folder / "config.jsonl", *[{"a": 1}] * 500)
    last = folder / "b.jsonl"
    last.write_bytes(last.read_bytes().rstrip(b"\n"))
    return folder


@pytest.fixture
def small_pieces() -> Iterator[None]:
    with (
        patch.object(read, "HELPED_BYTES", 1000),
        patch.object(jsonl, "BLOCK_BYTES", 1500),
        patch.object(jsonl, "_READ_BYTES", 500),
    ):
        yield


def _same(log: Path, folder: Path) -> ImportReport:
    """Import in pieces and as a whole; return the report."""
    in_pieces = imported(log, folder / "with")
    with patch.object(read, "HELPED_BYTES", 1 << 40):
        assert imported(log, folder / "without") == in_pieces
    unlike = ("logged_at",)
    one, other = (
        [{k: v for k, v in row.items() if k not in unlike} for row in steps_of(folder / name)]
        for name in ("with", "without")
    )
    assert one == other
    return in_pieces


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("num_processors", [1, 3])
def test_a_log_that_is_read_in_pieces_becomes_the_same(tmp_path: Path, num_processors: int):
    with patch.object(read, "num_processors", lambda: num_processors):
        report = _same(_log(tmp_path / "log"), tmp_path)
    assert report.num_trajectories > 80
    assert {bad.where for bad in report.bad_rows} == {
        f"{tmp_path / 'log' / 'a.jsonl'}, line {number}" for number in (31, 33, 34)
    }
    assert report.other_files == [str(tmp_path / "log" / "config.jsonl")]


def test_pieces_are_whole_lines(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"a\n" * 5 + b"long line\n" + b"\n" + b"end")
    file = read.LogFile(
        number=0, path=log, root=tmp_path, size=log.stat().st_size, num_bytes_before=0
    )
    with patch.object(jsonl, "BLOCK_BYTES", 4), patch.object(jsonl, "_READ_BYTES", 4):
        found = list(pieces.pieces_of(file, "messages"))
    blocks = [piece.block for piece in found if piece.block is not None and piece.block.lines]
    assert b"".join(block.lines for block in blocks) == log.read_bytes()
    assert all(block.lines.endswith(b"\n") for block in blocks[:-1])
    numbers = [block.first_line for block in blocks]
    assert numbers == list(accumulate((b.lines.count(b"\n") for b in blocks[:-1]), initial=1))
    assert len(set(found)) == len(found)
