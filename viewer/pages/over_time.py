"""The page of runs over time: rollouts, credit and training by iteration, while they grow."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.viewer.browser_fixes import opened
from graphcredit.viewer.queries.estimators import estimators, most_telling_first
from graphcredit.viewer.queries.iterations import (
    action_entropies,
    iteration_facts,
    silent_shares,
    training_facts,
)
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.charts import CLICK, curve, show_chart
from graphcredit.viewer.widgets.missing import per_run
from graphcredit.viewer.widgets.tables import choose_row
from graphcredit.viewer.widgets.text import one_line

_EVERY = 5
"""Seconds between two looks for new iterations. A look without any only lists the files."""

_MOST_RUNS = 4
"""Most runs that are shown at first: the last by name."""

_ROLLOUTS = {
    "success_rate": "success",
    "mean_return": "return",
    "mean_length": "length in steps",
    "invalid_share": "refused actions",
    "degenerate_share": "dead groups",
}
"""Columns of `iteration_facts`, and their titles."""

_METRICS = (
    *("entropy", "kl", "clipped_high", "clipped_low", "mismatch_mean", "mismatch_share"),
    *("loss", "grad_norm"),
)
"""Metrics of training that are shown at first."""


def show() -> None:
    """Show the page."""
    st.header("Over time")
    store = viewed_store()
    if not store.runs():
        missing.no_steps(store)
    # The fragment looks again by itself, so it also finds the first run of an empty store.
    st.fragment(_live, run_every=_EVERY)()


def _live() -> None:
    store = viewed_store()
    known = store.runs()
    if not known:
        return
    with st.container(horizontal=True):
        runs = st.multiselect(
            "Runs", known, default=known[-_MOST_RUNS:], format_func=one_line, width=500, key="runs"
        )
        estimator = selection.choose_estimator(_estimators(runs))
    st.caption(
        "A click on a point shows the tasks of its iteration; a new iteration appears by itself. "
        "A dead group has one return in all its trajectories, and a step without signal has "
        "advantage 0: neither teaches anything."
    )
    above = st.container()
    facts = per_run(store, runs, iteration_facts, "Some iterations")
    points: list[pa.Table] = []
    with st.container(horizontal=True):
        for name, title in _ROLLOUTS.items():
            points += _draw(facts, name, title)
        if estimator is not None:
            silent = per_run(store, runs, silent_shares, None, estimator=estimator)
            points += _draw(silent, "silent_share", "steps without signal")
        entropies = per_run(store, runs, action_entropies, None)
        points += _draw(entropies, "action_entropy", "action entropy")
    points += _training(store, runs)
    with above:
        # Keys do not reach the points of a curve.
        inside = opened("The points as a list", key="points") if points else None
    if inside is not None:
        with inside:
            _list(pa.concat_tables(points))


def _list(rows: pa.Table) -> None:
    columns = ("curve", "line", "iteration", "value")
    row = choose_row(rows, columns, key="points", title="Points of the curves")
    if row is not None:
        run, iteration = rows["run"][row].as_py(), rows["iteration"][row].as_py()
        selection.open_page("tasks", run=run, iteration=iteration)


def _estimators(runs: Sequence[str]) -> list[str]:
    """Return the estimators with credit in some of the runs, the most telling first."""
    names: set[str] = set()
    for run in runs:
        with missing.guarded("Some credit"):
            names.update(ask(estimators, run_id=run, iteration=None))
    return most_telling_first(names)


def _training(store: Store, runs: Sequence[str]) -> list[pa.Table]:
    """Draw metrics of training; return their points."""
    st.subheader("Training")
    metrics = per_run(store, runs, training_facts, "Some metrics of training")
    if metrics is None or not metrics.num_rows:
        st.caption("No training metrics: `graphcredit train` and `graphcredit loop` write them.")
        return []
    names = list(dict.fromkeys(metrics["metric"].to_pylist()))
    chosen = st.multiselect(
        "Metrics, as means over the updates of an iteration",
        names,
        default=[name for name in _METRICS if name in names],
        key="metrics",
    )
    lines: Any = pc.binary_join_element_wise(metrics["run"], metrics["training"], " · ")
    named = metrics.append_column("line", lines)
    with st.container(horizontal=True):
        points: list[pa.Table] = []
        for name in chosen:
            rows = named.filter(pc.equal(named["metric"], name))
            points += _draw(rows, "value", name.replace("_", " "))
    return points


def _draw(rows: pa.Table | None, value: str, title: str) -> list[pa.Table]:
    """Draw a curve and return its points; a click on one leads to the tasks of its iteration."""
    if rows is None or rows[value].null_count == rows.num_rows:
        return []
    named = rows if "line" in rows.column_names else rows.append_column("line", rows["run"])
    drawn = named.select(["run", "iteration", "line", value])
    clicked = show_chart(
        curve(drawn, value, title),
        width="content",
        key=f"curve_{title}",
        on_select="rerun",
        selection_mode=CLICK,
        alt=f"{title} by iteration",
    )
    for point in clicked["selection"][CLICK]:
        selection.open_page("tasks", run=point["run"], iteration=int(point["iteration"]))
    points = drawn.rename_columns(["run", "iteration", "line", "value"])
    points = points.set_column(3, "value", points["value"].cast(pa.float64()))
    return [points.append_column("curve", pa.repeat(title, points.num_rows))]
