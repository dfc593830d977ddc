"""A log imported again: what has grown takes the place of what was cut, the rest is not read."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.batches import TrajectoryBatch
from graphcredit.collector.importers.helpers import learn, read
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.sources import LogSource
from graphcredit.collector.importers.tally import Tally
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store.checks.run import check_store
from graphcredit.store.layout import IMPORTS, open_store
from tests.collector.importers.logs import WALKS, called, said, write_lines
from tests.collector.importers.read_back import imported, steps_of

AGAIN = "earlier copy of a rollout of which the store has more"
MOVED = "beginning of a rollout, moved to quarantine/ for a longer copy"


def line(session: str, role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"session_id": session, "role": role, "content": content, **more}


def session(name: str, num_turns: int, **more: Any) -> list[dict[str, Any]]:
    name, roles = f"00000000-0000-4000-8000-00000000000{name}", ("user", "assistant")
    return [line(name, role, f"{role} {n}", **more) for n in range(num_turns) for role in roles]


WHOLE = [*session("a", 2, reward=1), *session("b", 4), *session("c", 3, reward=0)]
SHORT = [*session("a", 2, reward=1), *session("b", 2), *session("c", 3, reward=0)]


def logged(store: Path) -> list[dict[str, Any]]:
    return [{**row, "logged_at": None} for row in steps_of(store)]


def test_the_longer_copy_takes_the_place_of_the_shorter(tmp_path: Path):
    short = write_lines(tmp_path / "short" / "log.jsonl", *SHORT)
    whole = write_lines(tmp_path / "whole" / "log.jsonl", *WHOLE)
    imported(whole, tmp_path / "fresh")
    imported(short, tmp_path / "store")
    store = open_store(tmp_path / "store")
    assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    report = imported(whole, tmp_path / "store")
    assert (report.num_trajectories, report.num_different) == (1, 0)
    assert report.left_out == {MOVED: 1}
    assert logged(tmp_path / "store") == logged(tmp_path / "fresh")
    assert not check_store(store).errors
    assert not list(store.root.glob("credit/**/*.parquet"))  # it is that of other groups
    assert len(list(store.quarantine_dir.glob("steps*.parquet"))) == 1
    for log in (whole, short):
        assert imported(log, tmp_path / "store").left_out == ({AGAIN: 1} if log == short else {})
        assert logged(tmp_path / "store") == logged(tmp_path / "fresh")


def test_another_trajectory_of_one_id_is_refused(tmp_path: Path):
    short = write_lines(tmp_path / "short" / "log.jsonl", *SHORT)
    first, answer, *rest = session("b", 4)
    changed = {**answer, "content": "another"}
    other = write_lines(tmp_path / "other" / "log.jsonl", first, changed, *rest)
    imported(short, tmp_path / "store")
    before = logged(tmp_path / "store")
    report = imported(other, tmp_path / "store")
    assert (report.num_trajectories, report.num_different) == (0, 1)
    assert logged(tmp_path / "store") == before


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_two_lengths_in_one_log_are_one_trajectory(names: tuple[str, str], tmp_path: Path):
    for name, rows in zip(names, (SHORT, WHOLE), strict=True):
        write_lines(tmp_path / "log" / f"{name}.jsonl", *rows)
    imported(write_lines(tmp_path / "whole" / "log.jsonl", *WHOLE), tmp_path / "fresh")
    report = imported(tmp_path / "log", tmp_path / "store")
    assert not report.bad_rows
    assert report.left_out[MOVED if names[0] == "a" else AGAIN] == 1
    order = ("trajectory_id", "step_index")
    one, other = (sorted(logged(tmp_path / s), key=itemgetter(*order)) for s in ("store", "fresh"))
    assert one == other
    assert not check_store(open_store(tmp_path / "store")).errors


def test_of_two_that_part_in_one_log_the_second_is_refused(tmp_path: Path):
    first, answer, *rest = session("b", 4)
    write_lines(tmp_path / "log" / "a.jsonl", *SHORT)
    write_lines(tmp_path / "log" / "b.jsonl", first, {**answer, "content": "another"}, *rest)
    report = imported(tmp_path / "log", tmp_path / "store")
    assert report.num_trajectories == 3
    assert [row.reason.split(":")[0] for row in report.bad_rows] == [
        "the id of a rollout must be unique"
    ]


CALLED = [called("look"), said("tool", "a door"), called("open"), said("tool", "a garden")]


def calls(num: int, **more: Any) -> list[dict[str, Any]]:
    """Return a log of calls of one session."""
    told = [said("user", "Leave the house."), *CALLED, said("assistant", "done")]
    session = "00000000-0000-4000-8000-00000000000d"
    return [
        {"session_id": session, "request": {"messages": told[:n]}, "response": told[n], **more}
        for n in range(1, 2 * num, 2)
    ]


def test_a_log_of_calls_is_completed_too(tmp_path: Path):
    short = write_lines(tmp_path / "short" / "log.jsonl", *calls(2))
    whole = write_lines(tmp_path / "whole" / "log.jsonl", *calls(3, reward=1))
    imported(whole, tmp_path / "fresh")
    imported(short, tmp_path / "store")
    assert imported(whole, tmp_path / "store").left_out[MOVED] == 1
    assert logged(tmp_path / "store") == logged(tmp_path / "fresh")
    assert imported(short, tmp_path / "store").left_out[AGAIN] == 1


_KILLED = """
import os, sys
from pathlib import Path
from graphcredit.collector.importers.run import import_log
left = int(sys.argv[3])
def killed(source, target, rename=os.rename):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    rename(source, target)
os.rename = os.replace = killed
import_log(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("num_renames", range(4))
def test_a_kill_between_any_two_renames_is_mended_by_the_same_import(
    tmp_path: Path, num_renames: int
):
    short = write_lines(tmp_path / "short" / "log.jsonl", *SHORT)
    whole = write_lines(tmp_path / "whole" / "log.jsonl", *WHOLE)
    imported(whole, tmp_path / "fresh")
    imported(short, tmp_path / "store")
    command = [sys.executable, "-c", _KILLED, whole, tmp_path / "store", str(num_renames)]
    status = subprocess.run(command, check=False).returncode
    assert status == (9 if num_renames < 3 else 0)  # the copy, what stays, the new shard
    ids = [(row["trajectory_id"], row["step_index"]) for row in steps_of(tmp_path / "store")]
    assert len(ids) == len(set(ids))
    imported(whole, tmp_path / "store")
    assert logged(tmp_path / "store") == logged(tmp_path / "fresh")
    assert not check_store(open_store(tmp_path / "store")).errors


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
