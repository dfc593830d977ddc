"""An import of what is there reads nothing, unless something that decides it has changed."""

import os
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from graphcredit.collector.importers.batches import TrajectoryBatch
from graphcredit.collector.importers.helpers import learn, read
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.sources import LogSource
from graphcredit.collector.importers.tally import Tally
from graphcredit.store.checks.run import check_store
from graphcredit.store.layout import IMPORTS, open_store
from tests.collector.importers.logs import WALKS, said, write_lines
from tests.collector.importers.read_back import imported

ROWS = [
    {"task_id": "t", "id": name, "messages": [said("user", "hall"), said("assistant", name)]}
    for name in ("east", "west")
]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files of each log that was read."""
    found: list[Path] = []
    batches = read.read_batches

    def counting(log: LogSource, tally: Tally, engine: str) -> Generator[TrajectoryBatch]:
        found.append(log.source)
        return batches(log, tally, engine)

    monkeypatch.setattr(learn, "read_batches", counting)
    return found


def test_the_report_is_that_of_a_reading_but_for_what_is_new(tmp_path: Path, reads: list[Path]):
    log = write_lines(tmp_path / "logs" / "a.jsonl", *ROWS, {"messages": 3}, "no JSON")
    (log.parent / "verdicts.json").write_text('{"east": true, "west": false}')
    first, again = (imported(log.parent, tmp_path / "store") for _ in range(2))
    (record,) = (tmp_path / "store" / IMPORTS).iterdir()
    record.unlink()
    anew = imported(log.parent, tmp_path / "store")
    assert len(reads) == 2
    assert again == anew == replace(first, num_trajectories=0, num_already_there=2)
    assert (anew.num_success, anew.num_bad_rows) == (1, 2)
    assert not check_store(open_store(tmp_path / "store")).violations


def _grow(log: Path, store: Path) -> None:
    with log.open("a") as lines:
        lines.write("\n")


def _judge(log: Path, store: Path) -> None:
    (log.parent / "verdicts.json").write_text('{"east": false, "west": false}')


def _lose_a_shard(log: Path, store: Path) -> None:
    next(store.glob("steps/**/*.parquet")).unlink()


def _damage(log: Path, store: Path) -> None:
    next((store / IMPORTS).iterdir()).write_bytes(b"{")


def _restore_time(log: Path, store: Path) -> None:
    """Change a byte and set the time of the file back, as an archive is unpacked."""
    found = log.stat()
    log.write_text(log.read_text().replace("hall", "cave"))
    os.utime(log, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize("change", [_grow, _judge, _lose_a_shard, _damage, _restore_time])
@pytest.mark.parametrize("is_file", [False, True])
def test_what_has_changed_is_read(
    change: Callable[[Path, Path], None], is_file: bool, tmp_path: Path, reads: list[Path]
):
    log = write_lines(tmp_path / "logs" / "a.jsonl", *ROWS)
    (log.parent / "verdicts.json").write_text('{"east": true, "west": false}')
    source = log if is_file else log.parent
    imported(source, tmp_path / "store")
    change(log, tmp_path / "store")
    report = imported(source, tmp_path / "store")
    assert len(reads) == 2
    assert report.num_trajectories == (2 if change in (_lose_a_shard, _restore_time) else 0)
    assert report.num_different == (change is _judge)


def test_other_options_and_stores_are_read(tmp_path: Path, reads: list[Path]):
    log = write_lines(tmp_path / "a.jsonl", *WALKS)

    def made(name: str, run: str = "imported") -> ImportReport:
        return imported(log, tmp_path / name, run=run)

    assert [made("one").num_trajectories, made("two").num_trajectories] == [len(WALKS)] * 2
    assert made("one", run="r").num_trajectories == len(WALKS)
    assert len(reads) == 3
    assert made("one", run="r").num_already_there == len(WALKS)
    assert len(reads) == 3
