"""The list of trajectories on the Tasks page: found by outcome, length, disagreement, tag, text."""

from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.viewer.pages.tasks_parts.filters import choose_limits, tagged
from graphcredit.viewer.queries.found_trajectories import (
    ORDERS,
    OUTCOMES,
    found_trajectories,
)
from graphcredit.viewer.steps.facts import outcome
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.folded import folded
from graphcredit.viewer.widgets.note_words import NoteRows
from graphcredit.viewer.widgets.notes import all_tags, notes_of
from graphcredit.viewer.widgets.text import show_table

_COLUMNS = {
    "task_id": st.column_config.TextColumn("task", pinned=True),
    "trajectory_id": st.column_config.TextColumn("trajectory"),
    "outcome": st.column_config.TextColumn("outcome"),
    "num_steps": st.column_config.NumberColumn("steps"),
    "return": st.column_config.NumberColumn("return", format="%.3f"),
    "disagreement": st.column_config.NumberColumn(
        "disagree",
        format="percent",
        help="Steps to which one estimator gives credit and another one blame.",
    ),
    "most": st.column_config.NumberColumn("most", format="%+.3f", help="Greatest advantage."),
    "least": st.column_config.NumberColumn("least", format="%+.3f", help="Least advantage."),
    "tags": st.column_config.TextColumn("tags", help="Of the trajectory and its steps."),
}
"""The table's columns, in order."""


def show_trajectories(
    run: str, iteration: int, estimator: str | None, names: tuple[str, ...]
) -> None:
    """Show the filters, and the trajectories that they leave.

    Args:
        run: The run.
        iteration: The iteration.
        estimator: Whose advantages are shown; None without credit.
        names: All estimators.
    """
    notes = notes_of(run, iteration)
    with folded("filters"):
        with st.container(horizontal=True):
            text = st.text_input("Find in names, texts and notes", key="text", bind="query-params")
            ending = st.selectbox("Outcome", list(OUTCOMES), key="outcome", bind="query-params")
            order = st.selectbox("First", list(ORDERS), key="order", bind="query-params")
        limits = choose_limits(notes, has_disagreement=len(names) > 1)
    text = text.strip()
    found = ask(
        found_trajectories,
        run_id=run,
        iteration=iteration,
        estimator=estimator,
        others=names,
        outcome=ending,
        shortest=limits.shortest,
        longest=limits.longest,
        disagreement=limits.disagreement,
        text=text,
        noted=_with_text(notes, text),
        only=None if limits.tag is None else tagged(notes, limits.tag, "trajectory_id"),
        order=order,
    )
    _table(found, notes)


def _with_text(notes: NoteRows, text: str) -> tuple[str, ...]:
    """Return the trajectories with a text in a note on them or on a step."""
    wanted = text.lower()
    names = {row["trajectory_id"] for row in notes if wanted in (row["note"] or "").lower()}
    return tuple(sorted(names)) if wanted else ()


def _table(found: pa.Table, notes: NoteRows) -> None:
    total = found["num_found"][0].as_py() if found.num_rows else 0
    st.caption(
        counted(total, "trajectory")
        + (f", the first {found.num_rows:,} of them shown" if found.num_rows < total else "")
        + ". Select a row to see its steps."
    )
    names = found["trajectory_id"].to_pylist()
    noted: dict[str, list[dict[str, Any]]] = {}
    for row in notes:
        noted.setdefault(row["trajectory_id"], []).append(row)
    columns = {
        "outcome": [outcome(success) for success in found["success"].to_pylist()],
        "tags": [", ".join(all_tags(noted.get(name, []))) or None for name in names],
    }
    shown = found
    for name, values in columns.items():
        shown = shown.append_column(name, pa.array(values, pa.string()))
    chosen = show_table(
        shown,
        column_config=_COLUMNS,
        column_order=[n for n in _COLUMNS if shown[n].null_count < shown.num_rows],
        key="trajectories_table",
        on_select="rerun",
        selection_mode="single-row",
        alt="Trajectories",
    )
    for row in chosen["selection"]["rows"]:
        selection.open_page("trajectory", task=found["task_id"][row].as_py(), trajectory=names[row])
