"""Other processes that help to read: whoever reads a piece, the store becomes the same."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from graphcredit.collector.importers.helpers import crew, pieces, read
from graphcredit.collector.importers.helpers.transfer import receive
from graphcredit.collector.importers.options import ImportOptions
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


class _PatientCrew(crew.Crew):
    """Begins when the helpers have started, as it would soon with a log that is long."""

    def __init__(self, options: ImportOptions) -> None:
        super().__init__(options)
        for helper in self.helpers:
            helper.wait()


@pytest.fixture
def small_pieces() -> Iterator[None]:
    with (
        patch.object(read, "HELPED_BYTES", 1000),
        patch.object(pieces, "PIECE_BYTES", 1500),
        patch.object(crew, "num_helpers", lambda: 1),
        patch.object(read, "Crew", _PatientCrew),
    ):
        yield


def _same(log: Path, folder: Path) -> ImportReport:
    """Import with and without help; return the report."""
    with_help = imported(log, folder / "with")
    with patch.object(read, "HELPED_BYTES", 1 << 40):
        assert imported(log, folder / "without") == with_help
    unlike = ("logged_at",)
    one, other = (
        [{k: v for k, v in row.items() if k not in unlike} for row in steps_of(folder / name)]
        for name in ("with", "without")
    )
    assert one == other
    return with_help


@pytest.mark.usefixtures("small_pieces")
def test_a_log_that_helpers_read_becomes_the_same(tmp_path: Path):
    taken: list[int] = []

    def counted(connection: crew.Connection) -> pieces.PieceRead:
        found = receive(connection)
        taken.append(len(found.batch.entries))
        return found

    with patch.object(crew, "receive", counted):
        report = _same(_log(tmp_path / "log"), tmp_path)
    assert sum(taken) > 20
    assert {bad.where for bad in report.bad_rows} == {
        f"{tmp_path / 'log' / 'a.jsonl'}, line {number}" for number in (31, 33, 34)
    }
    assert report.other_files == [str(tmp_path / "log" / "config.jsonl")]


@pytest.mark.usefixtures("small_pieces")
def test_helpers_that_do_not_start_are_not_needed(tmp_path: Path):
    with patch.object(crew, "WORKER", "graphcredit.no_such_module"):
        assert _same(_log(tmp_path / "log"), tmp_path).num_trajectories > 80


@pytest.mark.usefixtures("small_pieces")
def test_the_pieces_of_a_helper_that_is_killed_while_it_sends_are_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    deaths: list[OSError] = []

    def watched(connection: crew.Connection) -> pieces.PieceRead:
        try:
            return receive(connection)
        except OSError as error:
            deaths.append(error)
            raise

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setattr(crew, "WORKER", "tests.collector.importers.dying_worker")
    monkeypatch.setattr(crew, "receive", watched)
    assert _same(_log(tmp_path / "log"), tmp_path).num_trajectories > 80
    assert len(deaths) == 1


@pytest.mark.usefixtures("small_pieces")
def test_a_machine_that_starts_no_process_reads_alone(tmp_path: Path):
    with patch.object(crew.subprocess, "Popen", side_effect=OSError("too many")):
        assert _same(_log(tmp_path / "log"), tmp_path).num_trajectories > 80


def test_pieces_are_whole_lines(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"a\n" * 5 + b"long line\n" + b"\n" + b"end")
    file = read.LogFile(
        number=0, path=log, root=tmp_path, size=log.stat().st_size, num_bytes_before=0
    )
    with patch.object(pieces, "PIECE_BYTES", 4):
        found = list(pieces.pieces_of(file, "messages"))
    data = log.read_bytes()
    assert [(p.first_line, data[p.start : p.start + p.num_bytes]) for p in found] == [
        *[(1, b"a\na\n"), (3, b"a\na\n"), (5, b"a\nlong line\n")],
        (7, b"\nend"),
    ]
