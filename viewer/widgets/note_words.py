"""The words of notes, for the pages and the files that are written without a browser."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from graphcredit.store.parquet.notes import Note, note_of

NoteRows: TypeAlias = Sequence[dict[str, Any]]
"""Rows of `read_notes`."""

NoteWords: TypeAlias = Mapping[int | None, str]
"""Index of a step, or None for the whole trajectory, to the words of its note."""


def words_of_note(note: Note) -> str:
    """Return the tags and the text of a note."""
    return " ".join(filter(None, (" ".join(f"[{tag}]" for tag in note.tags), note.text)))


def words_of_trajectory(rows: NoteRows, trajectory_id: str) -> NoteWords:
    """Return the words of the notes on a trajectory and its steps."""
    return {
        row["step_index"]: words_of_note(note_of(row))
        for row in rows
        if row["trajectory_id"] == trajectory_id
    }
