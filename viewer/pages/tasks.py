"""The Tasks page: the groups of an iteration, with filters and orders to find interesting ones."""

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.viewer.pages.parts.first import in_numbers, show_first
from graphcredit.viewer.queries.estimators import estimators
from graphcredit.viewer.queries.tasks import KINDS, OUT_OF_DATE, task_facts, tasks_of_kind
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.containers import choices
from graphcredit.viewer.widgets.doubts import doubts_of_facts
from graphcredit.viewer.widgets.tables import choose_row
from graphcredit.viewer.widgets.task_names import task_names, with_instructions

_MAX_ROWS = 2000
"""Most rows to show. More would take a browser seconds; filters and orders reach the others."""

_COLUMNS = (
    *(
        "task_id",
        "success_rate",
        "doubts",
        "advantage_spread",
        "advantages",
        "returns",
        "disagreement",
    ),
    *("num_trajectories", "num_incomplete", "num_states", "num_merges"),
    *("singleton_share", "mean_return", "mean_length", "invalid_share", "num_steps"),
)
_ORDERS = {
    "widest spread": ("advantage_spread", "descending"),
    "most disagreement": ("disagreement", "descending"),
    "most singletons": ("singleton_share", "descending"),
    "lowest success": ("success_rate", "ascending"),
    "most steps": ("num_steps", "descending"),
    "name": ("task_id", "ascending"),
}
"""Orders of the rows: column and direction."""
_OF_CREDIT = ("advantage_spread", "disagreement", "singleton_share")
"""Orders in which groups come last whose rollouts all have one return."""


def show() -> None:
    """Show the page."""
    st.header("Tasks")
    store = viewed_store()
    with choices("tasks"):
        place = selection.choose_place(store)
        if place is None:
            return
        run, iteration = place
        names = ask(estimators, run_id=run, iteration=iteration)
        estimator = selection.choose_estimator(names)
    if estimator is None:
        missing.no_credit(store, run, iteration)
    facts = ask(
        task_facts, run_id=run, iteration=iteration, estimator=estimator, others=tuple(names)
    )
    instructions = ask(task_names, run_id=run, iteration=iteration)
    facts = with_instructions(facts, instructions)
    num_old = tasks_of_kind(facts, OUT_OF_DATE).num_rows
    if estimator is not None and num_old:
        what = f"Rollouts of {num_old:,} of {facts.num_rows:,} tasks"
        missing.newer_steps(store, run, iteration, estimators=names, what=what)
    missing.doubtful_credit(run, iteration)
    st.text(in_numbers(facts))
    show_first(run, iteration, facts, has_reach="reach" in names)
    _table(_wanted(facts))


def _wanted(facts: pa.Table) -> pa.Table:
    """Return the rows in the user's filter and order."""
    with choices("filters"):
        text = st.text_input("Find in names and instructions", key="find", bind="query-params")
        kind = st.selectbox("Show", list(KINDS), key="kind", bind="query-params")
        order = st.selectbox("First", list(_ORDERS), key="first", bind="query-params")
    rows = tasks_of_kind(facts, kind, text)
    column, direction = _ORDERS[order]
    keys = [(column, direction, "at_end"), ("task_id", "ascending", "at_end")]
    if column in _OF_CREDIT:
        keys.insert(0, ("is_degenerate", "ascending", "at_end"))
    return rows.sort_by(keys)


def _table(rows: pa.Table) -> None:
    st.caption(
        counted(rows.num_rows, "task")
        + (f", the first {_MAX_ROWS:,} of them shown" if rows.num_rows > _MAX_ROWS else "")
        + ". Tick a row to see its graph; a click on a column's name sorts."
    )
    shown = rows.slice(0, _MAX_ROWS)
    shown = shown.append_column("doubts", pa.array(doubts_of_facts(shown), pa.string()))
    row = choose_row(shown, _COLUMNS, key="tasks_table", title="Tasks")
    if row is not None:
        selection.open_page("graph", task=shown["task_id"][row].as_py())
