"""The Runs page: the iterations of each run."""

import pyarrow as pa
import streamlit as st

from graphcredit.store.errors import GraphcreditError
from graphcredit.store.layout import Store
from graphcredit.viewer.queries.iterations import iteration_facts
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.tables import choose_row

_COLUMNS = (
    *("run", "iteration", "success_rate", "mean_return", "mean_length", "invalid_share"),
    *("degenerate_share", "num_groups", "num_trajectories", "num_credited", "num_incomplete"),
    "num_steps",
)
_EVERY = 5
"""Seconds between two looks for new iterations. A look without any only lists the files."""


def show() -> None:
    """Show the page."""
    st.header("Runs")
    store = viewed_store()
    if not store.runs():
        missing.no_steps(store)
    # A fragment looks again by itself, so it also finds the first run of an empty store.
    st.fragment(_iterations, run_every=_EVERY)()


def _iterations() -> None:
    """Show what there is by now."""
    store = viewed_store()
    facts = _facts(store)
    if facts is None:
        return
    st.caption("Tick a row to see its tasks; a click on a column's name sorts.")
    row = choose_row(facts, _COLUMNS, key="runs_table", title="Iterations")
    if row is not None:
        picked = facts.slice(row, 1).to_pylist()[0]
        selection.open_page("tasks", run=picked["run"], iteration=picked["iteration"])


def _facts(store: Store) -> pa.Table | None:
    """Return a row for each iteration; None if nothing can be read.

    A run with a damaged file is asked iteration by iteration, so that the sound ones are shown.
    """
    parts: list[pa.Table] = []
    for run in store.runs():
        try:
            tables = [ask(iteration_facts, run_id=run, iteration=None)]
        except GraphcreditError:
            tables = []
            for iteration in store.iterations(run):
                with missing.guarded("Some iterations"):
                    tables.append(ask(iteration_facts, run_id=run, iteration=iteration))
        parts += [part.add_column(0, "run", pa.repeat(run, part.num_rows)) for part in tables]
    return pa.concat_tables(parts) if parts else None
