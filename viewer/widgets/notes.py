"""Show and change what people noted on steps and trajectories."""

from dataclasses import replace

import pyarrow as pa
import streamlit as st

from graphcredit.store.errors import GraphcreditError, NoteChangedError
from graphcredit.store.layout import Store
from graphcredit.store.log_text import one_line
from graphcredit.store.parquet.notes import (
    LONGEST_NOTE,
    Note,
    NotePlace,
    can_write_notes,
    note_at,
    note_rows,
    read_notes,
    write_note,
)
from graphcredit.viewer.config import LOOPBACK
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.note_words import NoteRows, words_of_note
from graphcredit.viewer.widgets.selection import current
from graphcredit.viewer.widgets.text import show_box, show_text

_REFUSED = "refused note"


def notes_of(run_id: str, iteration: int) -> NoteRows:
    """Return the notes of an iteration; they are few, and read anew in every script run."""
    return note_rows(read_notes(viewed_store(), run_id, iteration))


def all_tags(rows: NoteRows) -> list[str]:
    """Return the tags of some notes, each once, sorted."""
    return sorted({tag for row in rows for tag in row["tags"] or () if tag})


def choose_tag(rows: NoteRows) -> str | None:
    """Show a box of the tags of some notes, which is in the address; None for any."""
    tags = all_tags(rows)
    if not tags:
        return None
    return st.selectbox(
        "Tag",
        tags,
        index=None,
        key="tag",
        bind="query-params",
        format_func=one_line,
        placeholder="any",
    )


def tagged(rows: NoteRows, tag: str, name: str) -> tuple[str, ...]:
    """Return the names with a tag, each once, sorted; `name` is task_id or trajectory_id."""
    return tuple(sorted({row[name] for row in rows if tag in (row["tags"] or ())}))


def show_notes(table: pa.Table, step: int, rows: NoteRows) -> None:
    """Show the notes on a step and on its trajectory, to be read and changed."""
    chosen = current()
    assert chosen.run is not None
    assert chosen.iteration is not None
    whole = NotePlace(
        run_id=chosen.run,
        iteration=chosen.iteration,
        task_id=table["task_id"][0].as_py(),
        trajectory_id=table["trajectory_id"][0].as_py(),
    )
    index = table["step_index"][step].as_py()
    on_step = replace(whole, step_index=index)
    has_note = any(note_at(rows, place) for place in (whole, on_step))
    with st.expander("Notes and tags", expanded=has_note):
        if (why := _why_none_are_kept(viewed_store())) is not None:
            st.caption(why)
        _edit_note(f"Note on step {index}", rows, on_step)
        _edit_note("Note on the rollout", rows, whole)


def _edit_note(title: str, rows: NoteRows, place: NotePlace) -> None:
    """Show the note of a place in boxes that change it, or as text where notes are not kept."""
    note = note_at(rows, place)
    name = f"note_{'all' if place.step_index is None else 'step'}"
    if _why_none_are_kept(viewed_store()) is not None:
        if note:
            st.caption(title)
            show_box(words_of_note(note), key=name)
        return
    # A new note makes new boxes: else they would keep what was typed before.
    key = f"{name}_{place.trajectory_id}_{place.step_index}_{hash(note)}"
    with st.form(key, border=False):
        st.text_area(title, note.text, key=f"{key}_text", height=80, max_chars=LONGEST_NOTE)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.multiselect(
                "Tags",
                sorted({*all_tags(rows), *note.tags}),
                list(note.tags),
                key=f"{key}_tags",
                accept_new_options=True,
                placeholder="Choose tags, or type new ones",
            )
            st.form_submit_button("Save", on_click=_save, args=(place, key, note))
    _show_refused(place)


def _why_none_are_kept(store: Store) -> str | None:
    """Return why this viewer keeps no notes, as a sentence; None if it does."""
    if (st.get_option("server.address") or LOOPBACK[0]) not in LOOPBACK:
        return "Other machines can open this viewer without a password, so it keeps no notes."
    if not can_write_notes(store):
        return "This store is read-only, so no notes are kept."
    return None


def _save(place: NotePlace, key: str, seen: Note) -> None:
    text, tags = st.session_state[f"{key}_text"], st.session_state[f"{key}_tags"]
    note = Note(text=text.strip(), tags=tuple(dict.fromkeys(tag.strip() for tag in tags)))
    try:
        write_note(viewed_store(), place, note, seen=seen)
    except GraphcreditError as error:
        st.session_state[_REFUSED] = place, error, note


def _show_refused(place: NotePlace) -> None:
    """Show what could not be saved, so that it is not lost."""
    where, error, note = st.session_state.get(_REFUSED, (None, None, Note()))
    if where != place:
        return
    del st.session_state[_REFUSED]
    changed = isinstance(error, NoteChangedError)
    st.error(
        "Somebody changed this note meanwhile: theirs is shown. Yours was:"
        if changed
        else "The note was not saved:"
    )
    if not changed:
        show_text(str(error))
    show_box(words_of_note(note), key=f"refused_{place.step_index}")
