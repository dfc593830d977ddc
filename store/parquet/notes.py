"""Notes and tags of people on steps and trajectories: one small file for each iteration.

Credit never touches it, so notes outlive credit. A writer locks the file while it replaces it, and
names the note that it has seen, so that no writer overwrites the note of another.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from graphcredit.store.errors import InputError, NoteChangedError, system_errors
from graphcredit.store.files.lock import LOCK_NAME, LockFile
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import read_table
from graphcredit.store.schema import NOTE_COLUMNS, arrow_schema

NOTE_SCHEMA = arrow_schema(NOTE_COLUMNS)

LONGEST_NOTE = 100_000
LONGEST_TAG = 60
MOST_TAGS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A note on a step or a trajectory; false without text and tags."""

    text: str = ""
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.tags)


@dataclass(frozen=True, kw_only=True, slots=True)
class NotePlace:
    """The step or trajectory that a note is on."""

    run_id: str
    iteration: int
    task_id: str
    trajectory_id: str
    step_index: int | None = None
    """None for the whole trajectory."""


@system_errors()
def read_notes(store: Store, run_id: str, iteration: int) -> pa.Table:
    """Return the notes of an iteration, `NOTE_SCHEMA`, by trajectory and step; empty without any.

    Raises:
        SchemaError: The file cannot be read.
    """
    path = store.notes_path(run_id, iteration)
    if not path.exists():
        return NOTE_SCHEMA.empty_table()
    table = read_table(path, NOTE_COLUMNS)
    return table.sort_by([("trajectory_id", "ascending"), ("step_index", "ascending")])


@system_errors()
def write_note(store: Store, place: NotePlace, note: Note, *, seen: Note) -> None:
    """Put a note in the place of the one that its writer has seen; an empty one removes it.

    Other processes may write other notes at the same time.

    Args:
        store: The store.
        place: Its step or trajectory.
        note: The new note.
        seen: The note as the writer has seen it, empty if there was none.

    Raises:
        InputError: The note or a tag is too long, or a tag is empty or has two lines.
        NoteChangedError: Somebody changed the note meanwhile; nothing was written.
        PathError: The store cannot be written.
        SchemaError: The file cannot be read.
    """
    _check(note)
    path = store.notes_path(place.run_id, place.iteration)
    path.parent.mkdir(parents=True, exist_ok=True)
    with LockFile(path.parent / LOCK_NAME) as lock:
        lock.lock(wait=True)
        notes = read_notes(store, place.run_id, place.iteration)
        rows = note_rows(notes)
        before = note_at(rows, place)
        if before not in (seen, note):
            raise NoteChangedError(
                f"somebody changed this note meanwhile, to {before.text!r} with tags "
                f"{', '.join(before.tags) or 'none'}: nothing was written"
            )
        if before != note:
            others = notes.filter(pa.array([not _is_at(row, place) for row in rows], pa.bool_()))
            added = pa.Table.from_pylist([_row(place, note)] if note else [], NOTE_SCHEMA)
            write_table(pa.concat_tables([others, added]), path)


def note_rows(notes: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of `read_notes` without `noted_at`, which may be beyond Python's dates."""
    return notes.drop_columns(["noted_at"]).to_pylist()


def note_at(rows: Sequence[dict[str, Any]], place: NotePlace) -> Note:
    """Return the note of a place, given `note_rows`; an empty one if there is none."""
    return next((note_of(row) for row in rows if _is_at(row, place)), Note())


def can_write_notes(store: Store) -> bool:
    """Return whether this process may write to the folder of notes, or make it."""
    folder = store.root / "notes"
    while not folder.exists():
        folder = folder.parent
    with suppress(OSError):
        return os.access(folder, os.W_OK | os.X_OK)
    return False


def _is_at(row: dict[str, Any], place: NotePlace) -> bool:
    key = place.trajectory_id, place.step_index
    return (row["trajectory_id"], row["step_index"]) == key


def note_of(row: Mapping[str, Any]) -> Note:
    """Return the note of a row of `read_notes`; a foreign file may have nulls in it."""
    return Note(text=row["note"] or "", tags=tuple(tag for tag in row["tags"] or () if tag))


def _row(place: NotePlace, note: Note) -> dict[str, Any]:
    return {
        "task_id": place.task_id,
        "trajectory_id": place.trajectory_id,
        "step_index": place.step_index,
        "note": note.text,
        "tags": list(note.tags),
        "noted_at": datetime.now(UTC),
    }


def _check(note: Note) -> None:
    if len(note.text) > LONGEST_NOTE:
        raise InputError(
            f"a note has at most {LONGEST_NOTE:,} characters: got {len(note.text):,}. Shorten it"
        )
    if len(note.tags) > MOST_TAGS or len({*note.tags}) < len(note.tags):
        raise InputError(f"a note has at most {MOST_TAGS} different tags: got {len(note.tags)}")
    for tag in note.tags:
        if not tag.strip() or len(tag) > LONGEST_TAG or len(tag.splitlines()) > 1:
            raise InputError(
                f"a tag is one line of 1 to {LONGEST_TAG} characters: got {tag!r}. Choose another"
            )
