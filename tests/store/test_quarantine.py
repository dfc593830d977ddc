"""What is refused moves away whole, what is sound stays, and a crash at any point loses nothing."""

import json
import os
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphcredit.store import Store, read_steps
from graphcredit.store.checks import check_store
from graphcredit.store.quarantine import quarantine_store
from tests.store.whole_store import CREDIT, STEPS, add_file, set_value, whole_store
from tests.worlds import step_table, trajectory, write_store

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
    notes = {"w0-000000.json": b'{"source": "spool/w0.arrows"}', "list.json": b"[]", "x.json": b"{"}
    add_file("spool/w0.arrows", b"live")(store.root)
    for name, content in notes.items():
        add_file(f"quarantine/{name}", content)(store.root)
    assert quarantine_store(store)[1] == []
    assert {p.name: p.read_bytes() for p in store.quarantine_dir.iterdir()} == notes
    assert (store.root / "spool/w0.arrows").read_bytes() == b"live"


@pytest.mark.parametrize("survived", range(7))
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
    quarantine_store(store)
    assert _steps_of_trajectories(store) == SOUND
    assert [path.read_bytes() for path in store.quarantine_dir.glob("steps*.parquet")] == [before]
    assert check_store(store).errors == ()


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
