"""The Runs page: a table of the iterations of each run, and the audit."""

from collections.abc import Sequence

import pyarrow as pa
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.iterations import action_entropies, iteration_facts
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import viewed_store
from graphcredit.viewer.widgets.findings import show_findings
from graphcredit.viewer.widgets.per_run import per_run
from graphcredit.viewer.widgets.text import show_table

_COLUMNS = {
    "run": st.column_config.TextColumn("run", pinned=True),
    "iteration": st.column_config.NumberColumn("iteration", pinned=True),
    "success_rate": st.column_config.ProgressColumn(
        "success",
        min_value=0.0,
        max_value=1.0,
        format="percent",
        help="Share of complete trajectories.",
    ),
    "mean_return": st.column_config.NumberColumn("return", format="%.3f", help="Mean return."),
    "mean_length": st.column_config.NumberColumn(
        "length", format="%.1f", help="Mean length in steps."
    ),
    "invalid_share": st.column_config.NumberColumn(
        "invalid", format="percent", help="Steps whose action could not be parsed or was refused."
    ),
    "degenerate_share": st.column_config.NumberColumn(
        "degenerate",
        format="percent",
        help="Groups whose trajectories all have the same return, so that they teach nothing.",
    ),
    "action_entropy": st.column_config.NumberColumn(
        "entropy",
        format="%.3f",
        help="Entropy of the actions taken in a state, in nats, averaged over states by visits. "
        "With few samples it is too low, so compare iterations of equal group size. "
        "It needs credit, which defines the states.",
    ),
    "num_groups": st.column_config.NumberColumn("groups"),
    "num_trajectories": st.column_config.NumberColumn("complete", help="Complete trajectories."),
    "num_credited": st.column_config.NumberColumn(
        "credited",
        help="Complete trajectories with credit. If they are fewer than the complete ones, "
        "assign credit again.",
    ),
    "num_incomplete": st.column_config.NumberColumn(
        "incomplete",
        help="Trajectories that lack steps, an end or a value. They get no credit.",
    ),
    "num_steps": st.column_config.NumberColumn("steps"),
}
"""The table's columns, in order."""

_ENTROPY = "action_entropies"
"""Key of the entropies in the session."""


def show() -> None:
    """Show the page."""
    st.header("Runs")
    store = viewed_store()
    runs = store.runs()
    if not runs:
        missing.no_steps(store)
        return
    facts = per_run(store, runs, iteration_facts, "Some iterations")
    if facts is not None:
        facts = _with_entropy(facts)
        st.caption("Select a row to see its tasks; a click on a column's name sorts.")
        _table(facts)
        selection.link("over_time", "The same as curves, with the metrics of training")
    _audit(store)
    _count_entropy(store, runs)


def _with_entropy(facts: pa.Table) -> pa.Table:
    """Return the facts with the entropies that this session has computed, or null."""
    known = st.session_state.get(_ENTROPY)
    if known is None:
        return facts.append_column("action_entropy", pa.nulls(facts.num_rows, pa.float64()))
    place = ["run", "iteration"]
    return facts.join(known, place).sort_by([(name, "ascending") for name in place])


def _count_entropy(store: Store, runs: Sequence[str]) -> None:
    """Compute the entropies last, because they take longest; then rerun the page."""
    counted = per_run(store, runs, action_entropies, None)
    if counted is not None and counted != st.session_state.get(_ENTROPY):
        st.session_state[_ENTROPY] = counted
        st.rerun()


def _table(facts: pa.Table) -> None:
    chosen = show_table(
        facts,
        column_config=_COLUMNS,
        # Hide columns without any value.
        column_order=[name for name in _COLUMNS if facts[name].null_count < facts.num_rows],
        key="runs_table",
        on_select="rerun",
        selection_mode="single-row",
        alt="Iterations",
    )
    for row in chosen["selection"]["rows"]:
        picked = facts.slice(row, 1).to_pylist()[0]
        selection.open_page("tasks", run=picked["run"], iteration=picked["iteration"])


def _audit(store: Store) -> None:
    st.subheader("Audit")
    with st.container(horizontal=True):
        run = selection.choose_run(store)
        iteration = None if run is None else selection.choose_iteration(store, run)
    if run is not None and iteration is not None:
        show_findings(store, run, iteration)
