"""The Runs page: results of each iteration of each run, training metrics, and the audit."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Callable, Sequence
from contextlib import suppress

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from graphcredit.store.errors import GraphcreditError
from graphcredit.store.layout import Store
from graphcredit.viewer.queries.iterations import (
    action_entropies,
    iteration_facts,
    training_facts,
)
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.chart import show_chart
from graphcredit.viewer.widgets.findings import show_findings
from graphcredit.viewer.widgets.text import show_table

_Query = Callable[..., pa.Table]

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

_CURVES = (
    "success_rate",
    "mean_return",
    "mean_length",
    "invalid_share",
    "degenerate_share",
    "action_entropy",
)
_ENTROPY = "action_entropies"
"""Key of the entropies in the session."""

_METRICS = ("loss", "entropy", "kl", "grad_norm", "clipped_high", "mismatch_mean")
"""Metrics of training that are shown by default."""


def show() -> None:
    """Show the page."""
    st.header("Runs")
    store = viewed_store()
    runs = store.runs()
    if not runs:
        missing.no_steps(store)
        return
    facts = _per_run(store, runs, iteration_facts, "Some iterations")
    if facts is not None:
        facts = _with_entropy(facts)
        st.caption("Select a row to see its tasks; a click on a column's name sorts.")
        _table(facts)
        _curves(facts, _CURVES)
    _training(store, runs)
    _audit(store)
    _count_entropy(store, runs)


def _per_run(store: Store, runs: Sequence[str], query: _Query, what: str | None) -> pa.Table | None:
    """Return the result of a query for all runs, with a column `run`; None if nothing can be read.

    If a run has a damaged file, it is queried iteration by iteration, so that the undamaged
    iterations are shown. `what` is the subject of the message about the others; with None there is
    no message.
    """
    parts: list[pa.Table] = []
    for run in runs:
        try:
            found = [ask(query, run_id=run, iteration=None)]
        except GraphcreditError:
            found = []
            for iteration in store.iterations(run):
                with missing.guarded(what) if what else suppress(GraphcreditError):
                    found.append(ask(query, run_id=run, iteration=iteration))
        parts += [part.add_column(0, "run", pa.repeat(run, part.num_rows)) for part in found]
    return pa.concat_tables(parts) if parts else None


def _with_entropy(facts: pa.Table) -> pa.Table:
    """Return the facts with the entropies that this session has computed, or null."""
    known = st.session_state.get(_ENTROPY)
    if known is None:
        return facts.append_column("action_entropy", pa.nulls(facts.num_rows, pa.float64()))
    place = ["run", "iteration"]
    return facts.join(known, place).sort_by([(name, "ascending") for name in place])


def _count_entropy(store: Store, runs: Sequence[str]) -> None:
    """Compute the entropies last, because they take longest; then rerun the page."""
    counted = _per_run(store, runs, action_entropies, None)
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


def _curves(facts: pa.Table, names: Sequence[str]) -> None:
    if len(set(facts["iteration"].to_pylist())) < 2:
        return
    with st.container(horizontal=True):
        for name in names:
            if facts[name].null_count < facts.num_rows:
                _chart(facts.select(["run", "iteration", name]), name)


def _chart(rows: pa.Table, value: str, title: str | None = None) -> None:
    """Draw a column of `run, iteration, …` over the iterations, a line per run."""
    has_runs = len(set(rows["run"].to_pylist())) > 1
    legend = alt.Legend(orient="bottom", title=None) if has_runs else None
    show_chart(
        alt.Chart(rows)
        .mark_line(point=True)
        .encode(
            x=alt.X("iteration:Q", title=None, axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y(f"{value}:Q", title=None, scale=alt.Scale(zero=False)),
            color=alt.Color("run:N", legend=legend),
            tooltip=["run:N", "iteration:Q", f"{value}:Q"],
        )
        .properties(
            title=(title or value).replace("_", " "), height=250 if has_runs else 200, width=340
        ),
        width="content",
    )


def _training(store: Store, runs: Sequence[str]) -> None:
    st.subheader("Training")
    metrics = _per_run(store, runs, training_facts, "Some metrics of training")
    if metrics is None or not metrics.num_rows:
        missing.no_training()
        return
    names = list(dict.fromkeys(metrics["metric"].to_pylist()))
    chosen = st.multiselect(
        "Metrics, as means over the updates of an iteration",
        names,
        default=[name for name in _METRICS if name in names],
    )
    lines = pc.binary_join_element_wise(metrics["run"], metrics["training"], " · ")
    metrics = metrics.set_column(0, "run", lines)
    with st.container(horizontal=True):
        for name in chosen:
            _chart(metrics.filter(pc.equal(metrics["metric"], name)), "value", name)


def _audit(store: Store) -> None:
    st.subheader("Audit")
    with st.container(horizontal=True):
        run = selection.choose_run(store)
        iteration = None if run is None else selection.choose_iteration(store, run)
    if run is not None and iteration is not None:
        show_findings(store, run, iteration)
