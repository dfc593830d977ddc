"""Notes and tags: what is written is read again, whoever writes at the same time."""

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError, NewerSchemaError, NoteChangedError, PathError
from graphcredit.store.files import atomic
from graphcredit.store.files.tables import write_table
from graphcredit.store.parquet.notes import (
    NOTE_SCHEMA,
    Note,
    NotePlace,
    can_write_notes,
    note_at,
    read_notes,
    write_note,
)
from graphcredit.store.parquet.snapshot import stamp
from graphcredit.store.schema import SCHEMA_VERSION_KEY
from graphcredit.store.sql.catalog import run_trusted_query
from tests.store.writers import write_twenty_notes
from tests.worlds import worked_example, write_store

PLACE = NotePlace(run_id="r0", iteration=0, task_id="t0", trajectory_id="x", step_index=2)
WHOLE = replace(PLACE, step_index=None)
ODD = Note(text="Why c?\n**not bold**", tags=("odd", "to do"))
NOTHING = Note()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(tmp_path / "s", worked_example())


def _note(store: Store, place: NotePlace) -> Note:
    return note_at(read_notes(store, place.run_id, place.iteration).to_pylist(), place)


def test_a_note_is_read_as_it_was_written_and_removed_by_an_empty_one(store: Store):
    assert read_notes(store, "r0", 0).num_rows == 0
    write_note(store, PLACE, ODD, seen=NOTHING)
    write_note(store, WHOLE, Note(tags=("good",)), seen=NOTHING)
    assert (_note(store, PLACE), _note(store, WHOLE)) == (ODD, Note(tags=("good",)))
    assert read_notes(store, "r0", 0).schema.equals(NOTE_SCHEMA)
    write_note(store, PLACE, NOTHING, seen=ODD)
    assert (_note(store, PLACE), _note(store, WHOLE)) == (NOTHING, Note(tags=("good",)))
    assert check_store(store).violations == ()


def test_what_somebody_changed_meanwhile_is_not_overwritten(store: Store):
    write_note(store, PLACE, ODD, seen=NOTHING)
    with pytest.raises(NoteChangedError, match=r"changed this note meanwhile.*nothing was written"):
        write_note(store, PLACE, Note(text="mine"), seen=NOTHING)
    assert _note(store, PLACE) == ODD
    # To write what is there already is no conflict.
    write_note(store, PLACE, ODD, seen=NOTHING)
    write_note(store, PLACE, Note(text="mine"), seen=ODD)
    assert _note(store, PLACE) == Note(text="mine")


def test_writers_at_the_same_time_lose_nothing(store: Store):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(write_twenty_notes, [store.root] * 2, range(2)))
    notes = read_notes(store, "r0", 0)
    assert sorted(notes["note"].to_pylist()) == sorted(
        f"{w}.{n}" for w in range(2) for n in range(20)
    )


def test_a_writer_that_dies_leaves_the_notes_before(store: Store, monkeypatch: pytest.MonkeyPatch):
    write_note(store, PLACE, ODD, seen=NOTHING)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            write_note(store, WHOLE, ODD, seen=NOTHING)
    assert (_note(store, PLACE), _note(store, WHOLE)) == (ODD, NOTHING)
    write_note(store, WHOLE, ODD, seen=NOTHING)
    assert _note(store, WHOLE) == ODD


def test_notes_outlive_credit_and_stand_beside_it_in_sql(store: Store):
    write_note(store, PLACE, ODD, seen=NOTHING)
    write_note(store, WHOLE, Note(tags=("good",)), seen=NOTHING)
    for _ in range(2):
        assign_credit(store, CreditSettings(estimators=configure(["graphgpo"])))
    sql = "SELECT action, note, tags, graphgpo_advantage IS NOT NULL AS known FROM noted"
    (row,) = run_trusted_query(store, sql).table.to_pylist()
    assert row == {"action": "c", "note": ODD.text, "tags": [*ODD.tags], "known": True}
    sql = "SELECT trajectory_id, tags FROM trajectories JOIN notes USING (trajectory_id)"
    sql += " WHERE notes.step_index IS NULL"
    assert run_trusted_query(store, sql).table.to_pylist() == [
        {"trajectory_id": "x", "tags": ["good"]}
    ]


def test_a_note_leaves_the_stamp_of_all_else_as_it_was(store: Store):
    before = stamp(store, "r0", 0)
    write_note(store, PLACE, ODD, seen=NOTHING)
    assert stamp(store, "r0", 0) == before


@pytest.mark.parametrize(
    ("note", "message"),
    [
        (Note(text="a" * 100_001), "at most 100,000 characters: got 100,001"),
        (Note(tags=("a", "a")), "different tags"),
        (Note(tags=(" ",)), "1 to 60 characters"),
        (Note(tags=("a\nb",)), "one line"),
        (Note(tags=("a" * 61,)), "1 to 60 characters"),
    ],
)
def test_what_is_no_note_is_refused(store: Store, note: Note, message: str):
    with pytest.raises(InputError, match=message):
        write_note(store, PLACE, note, seen=NOTHING)
    assert read_notes(store, "r0", 0).num_rows == 0


def test_a_file_of_a_newer_version_is_not_replaced(store: Store):
    path = store.notes_path("r0", 0)
    newer = NOTE_SCHEMA.with_metadata({SCHEMA_VERSION_KEY: b"99"}).empty_table()
    write_table(newer, path)
    before = path.read_bytes()
    with pytest.raises(NewerSchemaError):
        write_note(store, PLACE, ODD, seen=NOTHING)
    assert path.read_bytes() == before


def test_a_store_that_cannot_be_written_says_so(store: Store, monkeypatch: pytest.MonkeyPatch):
    assert can_write_notes(store)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert not can_write_notes(store)
    (store.root / "notes").write_text("in the way")
    with pytest.raises(PathError):
        write_note(store, PLACE, ODD, seen=NOTHING)
