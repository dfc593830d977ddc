"""Quarantine moves refused files whole, keeps sound rows, and loses nothing in a crash."""

import errno
import json
import os
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.store import Store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError
from graphcredit.store.files.lock import alone_in
from graphcredit.store.quarantine import plan
from graphcredit.store.quarantine.move import quarantine_store
from graphcredit.store.quarantine.plan import FileMove
from tests.store.whole_store import CREDIT, STEPS, add_file, set_value, whole_store
from tests.worlds import START, step_table, trajectory, write_store

SOUND = Counter({"y": 2, "z": 2, "dead": 2})


class _KilledError(BaseException):
    """Stands for the end of the process."""


def _steps_of_trajectories(store: Store) -> Counter[str]:
    tables = list(read_steps(store, columns=["trajectory_id"]))
    return Counter(value for table in tables for value in table["trajectory_id"].to_pylist())


def test_the_sound_trajectories_of_a_shard_stay_as_they_were(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "reward", float("nan"))(store.root)
    before = pq.read_table(store.root / STEPS, partitioning=None)
    _, (credit, steps) = quarantine_store(store)
    assert (credit.source, steps.source) == (CREDIT, STEPS)
    assert steps.kept is not None
    kept = pq.read_table(store.root / steps.kept, partitioning=None)
    assert kept.equals(before.slice(4))
    assert not (store.root / CREDIT).exists()


def test_the_note_says_what_was_refused_and_why_and_where_it_was(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "cost", -1.0)(store.root)
    _, (_, item) = quarantine_store(store)
    note = json.loads((store.root / item.target).with_suffix(".json").read_text())
    assert (note["source"], note["kept"]) == (STEPS, item.kept)
    assert note["refused_trajectories"] == ["x"]
    (reason,) = note["reasons"]
    assert (reason["rule"], reason["found"]) == ("positive_cost", "-1.0")
    assert (reason["first_rows"], reason["num_rows"]) == ([1], 1)


def test_a_trajectory_is_refused_in_all_its_shards(tmp_path: Path):
    x = trajectory("x", "A a B b C c D")
    y = trajectory("y", "A a B b C")
    x[2]["reward"] = float("inf")
    store = write_store(tmp_path / "store", [x[0], y[0]], [*x[1:], y[1]], trajectory("z", "A a B"))
    report, moved = quarantine_store(store)
    assert [Path(item.source).name for item in moved] == ["w0-000000.parquet", "w1-000000.parquet"]
    assert _steps_of_trajectories(store) == {"y": 2, "z": 1}
    assert report.violations == ()
    assert report.num_steps == 3


def test_a_trajectory_that_reaches_into_a_damaged_shard_follows_it(tmp_path: Path):
    x, y = trajectory("x", "A a B b C"), trajectory("y", "A a B")
    store = write_store(tmp_path / "store", [x[0]], [x[1], *y])
    add_file(STEPS, b"noise")(store.root)
    quarantine_store(store)
    assert _steps_of_trajectories(store) == {"y": 1}
    assert len(list(store.quarantine_dir.glob("*.parquet"))) == 2


def test_one_name_can_be_quarantined_again_and_again(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    for content in (b"first", b"second"):
        add_file(STEPS, content)(store.root)
        quarantine_store(store)
    contents = {path.read_bytes() for path in store.quarantine_dir.glob("steps*.parquet")}
    assert contents == {b"first", b"second"}


def test_a_new_shard_stays_where_a_refused_one_was(tmp_path: Path):
    """What the user threw away was moved once; its note is no reason to move its successor."""
    store = whole_store(tmp_path / "store")
    sound = (store.root / STEPS).read_bytes()
    add_file(STEPS, b"noise")(store.root)
    _, moved = quarantine_store(store)
    for item in moved:
        (store.root / item.target).unlink()
    add_file(STEPS, sound)(store.root)
    assert quarantine_store(store)[1] == []
    assert (store.root / STEPS).read_bytes() == sound


def test_notes_of_others_in_the_quarantine_are_left_alone(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    notes = {"w0-000000.json": b'{"source": "spool/w0.jsonl"}', "list.json": b"[]", "x.json": b"{"}
    add_file("spool/w0.jsonl", b"live")(store.root)
    for name, content in notes.items():
        add_file(f"quarantine/{name}", content)(store.root)
    assert quarantine_store(store)[1] == []
    found = {p.name: p.read_bytes() for p in store.quarantine_dir.iterdir() if p.name != ".lock"}
    assert found == notes
    assert (store.root / "spool/w0.jsonl").read_bytes() == b"live"


@pytest.mark.parametrize("survived", range(6))
def test_a_crash_loses_nothing_and_the_next_run_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survived: int
):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "reward", float("nan"))(store.root)
    before = (store.root / STEPS).read_bytes()
    _die_after(monkeypatch, survived)
    try:
        quarantine_store(store)
        died = False
    except _KilledError:
        died = True
    monkeypatch.undo()
    # Two notes and two files move into place, and the kept shard gets its name.
    assert died == (survived < 5)
    report, _ = quarantine_store(store)
    assert report.errors == ()
    assert _steps_of_trajectories(store) == SOUND
    assert [path.read_bytes() for path in store.quarantine_dir.glob("steps*.parquet")] == [before]


def _die_after(monkeypatch: pytest.MonkeyPatch, survived: int) -> None:
    """Let the process end at the rename after the given number of them."""
    left = survived
    rename = os.rename

    def rename_or_die(source: Path, target: Path) -> None:
        nonlocal left
        if left == 0:
            raise _KilledError
        left -= 1
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_or_die)
    monkeypatch.setattr(os, "replace", rename_or_die)


def test_a_shard_of_unknown_columns_keeps_them(tmp_path: Path):
    store = write_store(tmp_path / "store", [])
    rows = [*trajectory("x", "A a B"), *trajectory("y", "A a B")]
    rows[0]["cost"] = 0.0
    table = step_table(rows)
    pq.write_table(table.append_column("mood", table["state"]), store.root / STEPS)
    _, (item,) = quarantine_store(store)
    assert item.kept is not None
    assert pq.read_table(store.root / item.kept, partitioning=None)["mood"].to_pylist() == ["A"]


def _later(rows: list[dict[str, Any]], hours: int) -> list[dict[str, Any]]:
    """Return the same steps as another worker would log them, hours later."""
    return [
        row
        | {"worker_id": f"w{hours}", "logged_at": START + timedelta(hours=hours, seconds=number)}
        for number, row in enumerate(rows)
    ]


X, Y, Z = (trajectory(name, "A a B b C", success=True) for name in "xyz")

COPIES: dict[str, tuple[list[list[dict[str, Any]]], str, set[str]]] = {
    "one shard": ([[*_later(X, 1), *Y, *_later(X, 2)]], "twice", {"w0"}),
    "interleaved": (
        [[r for rows in zip(_later(X, 2), _later(Y, 3), _later(X, 1), strict=True) for r in rows]],
        "twice",
        {"w0"},
    ),
    "two shards": ([[*_later(X, 2), *Y], [*Z, *_later(X, 1)]], "twice", {"w1"}),
    "a shard alone": ([[*_later(X, 1), *Y, *Z], _later(X, 2)], "twice", {"w1"}),
    "three shards": ([_later(X, 1), [*Y, *_later(X, 2)], _later(X, 3)], "3 times", {"w1", "w2"}),
    "spread": (
        [[*_later(X[:1], 1), *Y, *_later(X[:1], 2)], _later(X[1:], 3), _later(X[1:], 4)],
        "twice",
        {"w0", "w2"},
    ),
}
"""Shards; how often check says that x is there; the shards that move."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("shards", "often", "moving"), COPIES.values(), ids=COPIES)
def test_of_equal_copies_the_first_stays(
    tmp_path: Path, shards: list[list[dict[str, Any]]], often: str, moving: set[str]
):
    store = write_store(tmp_path / "store", *shards)
    num_others = sum(row["trajectory_id"] != "x" for rows in shards for row in rows)
    errors = check_store(store).errors
    assert {error.rule.name for error in errors} == {"unique_trajectory"}
    assert {error.found for error in errors} == {f"the same trajectory {often}, equal: x"}
    report, moved = quarantine_store(store)
    assert report.violations == ()
    assert {Path(item.source).name[:2] for item in moved} == moving
    assert all((item.copied, item.refused) == (("x",), ()) for item in moved)
    assert _steps_of_trajectories(store)["x"] == 2
    assert report.num_steps == 2 + num_others


def test_a_copy_in_a_damaged_shard_leaves_the_others_as_they_are(tmp_path: Path):
    store = write_store(tmp_path / "store", [], [*_later(X, 1), *Y], _later(X, 2))
    add_file(STEPS, b"noise")(store.root)
    report, moved = quarantine_store(store)
    assert [Path(item.source).name[:2] for item in moved] == ["w0", "w2"]
    assert report.violations == ()
    assert _steps_of_trajectories(store) == {"x": 2, "y": 2}


def test_steps_that_are_there_again_go_and_the_trajectory_stays_whole(tmp_path: Path):
    """A worker died after its first step and was started again with the same ids."""
    store = write_store(tmp_path / "store", _later(X[:1], 1), _later(X, 2))
    (error,) = check_store(store).errors
    assert error.found == "steps of a trajectory more than once, equal: x"
    report, _ = quarantine_store(store)
    assert (report.errors, report.num_incomplete) == ((), 0)
    assert _steps_of_trajectories(store) == {"x": 2}


def test_of_copies_that_differ_none_stays(tmp_path: Path):
    other = _later([X[0] | {"reward": 5.0}, X[1]], 2)
    store = write_store(tmp_path / "it's", [*X, *Y], other)
    assert "unique_step" in {error.rule.name for error in check_store(store).errors}
    _, moved = quarantine_store(store)
    assert _steps_of_trajectories(store) == {"y": 2}
    assert [item.refused for item in moved] == [("x",), ("x",)]


def _fails(path: Path, error: OSError, function: Any) -> Any:
    def fail(*arguments: Any, **options: Any) -> Any:
        if path in arguments:
            raise error
        return function(*arguments, **options)

    return fail


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_what_the_system_refuses_is_no_damage_and_nothing_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    store = write_store(tmp_path / "store", X, [*Y, *Y, Y[0] | {"reward": 3.0}], Z)
    closed, error = store.shards()[2].path, OSError(number, os.strerror(number))
    monkeypatch.setattr(pq, "ParquetFile", _fails(closed, error, pq.ParquetFile))
    monkeypatch.setattr(Path, "open", _fails(closed, error, Path.open))
    before = [shard.path for shard in store.shards()]
    found = {error.rule.name: error.found for error in check_store(store).errors}
    assert found["accessible"] == os.strerror(number)
    assert "readable" not in found
    with pytest.raises(InputError, match=f"found {os.strerror(number)}, which is not damage"):
        quarantine_store(store)
    assert [shard.path for shard in store.shards()] == before
    assert list(store.quarantine_dir.glob("*.parquet")) == []


def test_nothing_moves_where_the_kept_rows_have_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = write_store(tmp_path / "store", [*X, *Y], [*_later(X, 1), *Z])
    set_value(STEPS, 3, "cost", -1.0)(store.root)
    write, full = plan.write_table_unsynced, OSError(errno.ENOSPC, "No space left")
    calls: list[Path] = []

    def write_once(table: pa.Table, path: Path) -> None:
        calls.append(path)
        write(table, path)
        if len(calls) == 2:
            raise full

    monkeypatch.setattr(plan, "write_table_unsynced", write_once)
    before = sorted(store.root.glob("steps/**/*"))
    with pytest.raises(OSError, match="No space left"):
        quarantine_store(store)
    assert len(calls) == 2
    assert sorted(store.root.glob("steps/**/*")) == before


def test_nothing_moves_from_a_folder_that_may_not_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "reward", float("nan"))(store.root)
    folder = store.steps_dir("r0", 0)
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder)
    before = sorted(path for path in store.root.rglob("*") if path.is_file())
    with pytest.raises(
        InputError, match=r"before anything moves: you have no permission to write to"
    ):
        quarantine_store(store)
    (store.quarantine_dir / ".lock").unlink()
    assert sorted(path for path in store.root.rglob("*") if path.is_file()) == before


def test_what_moved_is_reported_when_an_error_ends_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "reward", float("nan"))(store.root)
    rename = os.rename

    def rename_credit(source: Path, target: Path) -> None:
        if source == store.root / STEPS:
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_credit)
    moved: list[FileMove] = []
    with pytest.raises(OSError, match="Input/output error"):
        quarantine_store(store, on_move=moved.append)
    monkeypatch.undo()
    assert [item.source for item in moved] == [CREDIT]
    report, rest = quarantine_store(store)
    assert [item.source for item in rest] == [STEPS]
    assert report.errors == ()
    assert not list(store.root.rglob("*.tmp"))


def test_one_process_at_a_time_moves(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    with (
        alone_in(store.quarantine_dir, "taken"),
        pytest.raises(InputError, match="only one process at a time"),
    ):
        quarantine_store(store)
