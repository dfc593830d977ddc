"""A log is read in pieces by any number of processes: the store becomes the same."""

import json
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from unittest.mock import patch

import pytest

from graphcredit.collector.importers.helpers import read
from graphcredit.collector.importers.logs import jsonl
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.sources import log_at
from graphcredit.store.errors import OptionError
from tests.collector.importers.logs import WALKS, episode, said, walk, write_lines
from tests.collector.importers.read_back import imported, small_pieces, steps_of


def _log(folder: Path) -> Path:
    """Write large and small files of two formats, with copies, bad rows, and what is no log."""
    rows = [walk("Küche", str(number % 7), trial=number % 20) for number in range(60)]
    runs = [walk("kitchen", run_id=f"r{number % 2}", trial=number) for number in range(20)]
    broken = ["{", "", {**WALKS[0], "messages": [said("wizard", "?")]}, {**WALKS[0], "reward": "x"}]
    write_lines(folder / "a.jsonl", *rows[:30], *broken, *rows[20:], *runs)
    write_lines(folder / "b.jsonl", *rows[:5], walk("x" * 9000), walk("last"))
    for number in range(9):
        (folder / f"c{number}.json").write_text(json.dumps(rows[number] | {"trial": f"c{number}"}))
    (folder / "d.json").write_text(json.dumps(rows[:40]))  # large, and no lines
    write_lines(folder / "t.jsonl", *[episode(f"t{number % 12}") for number in range(14)])
    write_lines(folder / "config.jsonl", *[{"a": 1}] * 500)
    last = folder / "b.jsonl"
    last.write_bytes(last.read_bytes().rstrip(b"\n"))
    return folder


def _imported(log: Path, store: Path, engine: str) -> tuple[ImportReport, dict[str, bytes]]:
    """Import a log at a fixed time; return the report, and the bytes of all shards."""
    with patch("time.time_ns", lambda: 10**18):
        report = imported(log, store, engine=engine)
    shards = store.glob("steps/**/*.parquet")
    return report, {str(path.relative_to(store)): path.read_bytes() for path in shards}


def test_the_store_is_the_same_whoever_reads(tmp_path: Path):
    log = _log(tmp_path / "log")
    with small_pieces(1500):
        report, shards = _imported(log, tmp_path / "one", "local:1")
        assert _imported(log, tmp_path / "three", "local:3") == (report, shards)
    assert _imported(log, tmp_path / "whole", "local") == (report, shards)
    assert (report.num_trajectories > 80, len(shards)) == (True, 4)
    assert sorted(report.num_files.values()) == [1, 12]
    assert {bad.where for bad in report.bad_rows} == {
        f"{log / 'a.jsonl'}, line {number}" for number in (31, 33, 34)
    }
    assert report.other_files == [str(log / "config.jsonl")]


def test_many_files_are_read_by_several_processes_of_themselves(tmp_path: Path):
    for number in range(4):
        write_lines(tmp_path / f"{number}.jsonl", walk("kitchen", trial=number))
    log = log_at(tmp_path, ImportOptions())
    with patch.object(read, "num_processors", lambda: 8):
        assert read.num_workers_for(log, None) == 0
        assert read.num_workers_for(log, 3) == 3
        with patch.object(read, "HELPED_FILES", 4):
            assert read.num_workers_for(log, None) == read.MOST_WORKERS
    for engine, message in (("local:0", "local:N"), ("spark", "one of local, ray: got 'spark'")):
        with pytest.raises(OptionError, match=message):
            imported(tmp_path, tmp_path / "store", engine=engine)
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_a_cluster_makes_the_same_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for number in range(3):  # more than two pieces
        write_lines(tmp_path / f"log/{number}.jsonl", walk("x" * 900_000, "hall"), walk("a", "b"))
    told: list[str] = []
    for engine in ("local:1", "ray", "ray:127.0.0.1:1"):
        command = ["import", "log", engine.replace(":", "-"), "--engine", engine, "--json"]
        result = subprocess.run(
            [sys.executable, "-m", "graphcredit.cli.main", *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        told.append(result.stdout or result.stderr)
    assert told[0] == told[1]
    assert "answer at '127.0.0.1:1'" in told[2]
    one, other = (
        [{**step, "logged_at": None} for step in steps_of(tmp_path / name)]
        for name in ("local-1", "ray")
    )
    assert one == other
    assert len(one) == 12


def test_pieces_are_whole_lines(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"a\n" * 5 + b"long line\n" + b"\n" + b"end")
    with patch.object(jsonl, "BLOCK_BYTES", 4), patch.object(jsonl, "_READ_BYTES", 4):
        blocks = [block for block in jsonl.blocks_of(log, 1000) if block.lines]
    assert b"".join(block.lines for block in blocks) == log.read_bytes()
    assert all(block.lines.endswith(b"\n") for block in blocks[:-1])
    numbers = [block.first_line for block in blocks]
    assert numbers == list(accumulate((b.lines.count(b"\n") for b in blocks[:-1]), initial=1))
