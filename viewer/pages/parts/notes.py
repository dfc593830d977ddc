"""The notes on a trajectory and the step that is shown, on the Trajectory page."""

from dataclasses import replace

import pyarrow as pa
import streamlit as st

from graphcredit.store.parquet.notes import NotePlace, note_at
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.note_words import NoteRows
from graphcredit.viewer.widgets.notes import edit_note, why_none_are_kept
from graphcredit.viewer.widgets.selection import current


def show_notes(table: pa.Table, step: int, rows: NoteRows) -> None:
    """Show the notes on a step and on its trajectory, to be read and changed.

    Args:
        table: The steps of the trajectory.
        step: Row of the step.
        rows: The notes of the iteration.
    """
    whole = _place_of(table)
    index = table["step_index"][step].as_py()
    on_step = replace(whole, step_index=index)
    has_note = any(note_at(rows, place) for place in (whole, on_step))
    with st.expander("Notes and tags", expanded=has_note):
        if (why := why_none_are_kept(viewed_store())) is not None:
            st.caption(why)
        edit_note(f"Note on step {index}", rows, on_step)
        edit_note("Note on the trajectory", rows, whole)


def _place_of(table: pa.Table) -> NotePlace:
    """Return the place of notes on a whole trajectory."""
    chosen = current()
    assert chosen.run is not None
    assert chosen.iteration is not None
    return NotePlace(
        run_id=chosen.run,
        iteration=chosen.iteration,
        task_id=table["task_id"][0].as_py(),
        trajectory_id=table["trajectory_id"][0].as_py(),
    )
