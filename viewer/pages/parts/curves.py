"""Rollouts, credit and training of runs as curves over their iterations, on the Runs page."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.log_text import one_line
from graphcredit.viewer.queries.estimators import estimators, most_telling_first
from graphcredit.viewer.queries.iterations import action_entropies, silent_shares, training_facts
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.charts import CLICK, curve, show_chart
from graphcredit.viewer.widgets.missing import per_run

_MOST_RUNS = 4
"""Most runs that are shown at first: the last by name."""

_ROLLOUTS = {
    "success_rate": "success",
    "mean_return": "return",
    "mean_length": "length in steps",
    "invalid_share": "refused actions",
    "degenerate_share": "groups with one return",
}
"""Columns of `iteration_facts`, and their titles."""

_METRICS = (
    *("entropy", "kl", "clipped_high", "clipped_low", "mismatch_mean", "mismatch_share"),
    *("loss", "grad_norm"),
)
"""Metrics of training that are drawn, as means over the updates of an iteration."""


def show_curves(store: Store, facts: pa.Table) -> None:
    """Show the curves of the chosen runs."""
    st.subheader("Over time")
    known = store.runs()
    runs = st.multiselect(
        "Runs", known, default=known[-_MOST_RUNS:], format_func=one_line, width=500, key="runs"
    )
    st.caption(
        "A click on a point shows the tasks of its iteration. A group with one return, and a step "
        "without signal, whose advantage is 0, teach nothing."
    )
    with st.container(horizontal=True):
        for name, title in _ROLLOUTS.items():
            _draw(facts.filter(pc.is_in(facts["run"], pa.array(runs, pa.string()))), name, title)
        if (estimator := _most_telling(runs)) is not None:
            silent = per_run(store, runs, silent_shares, None, estimator=estimator)
            _draw(silent, "silent_share", f"steps without signal by {estimator}")
        _draw(per_run(store, runs, action_entropies, None), "action_entropy", "action entropy")
        _training(per_run(store, runs, training_facts, "Some metrics of training"))


def _most_telling(runs: Sequence[str]) -> str | None:
    """Return the most telling estimator with credit in some of the runs."""
    names: set[str] = set()
    for run in runs:
        with missing.guarded("Some credit"):
            names.update(ask(estimators, run_id=run, iteration=None))
    return next(iter(most_telling_first(names)), None)


def _training(metrics: pa.Table | None) -> None:
    if metrics is None:
        return
    lines = pc.binary_join_element_wise(metrics["run"], metrics["training"], " · ")
    named = metrics.append_column("line", lines)
    for name in _METRICS:
        rows = named.filter(pc.equal(named["metric"], name))
        _draw(rows, "value", f"training: {name.replace('_', ' ')}")


def _draw(rows: pa.Table | None, value: str, title: str) -> None:
    """Draw a curve; a click on a point leads to the tasks of its iteration."""
    if rows is None or rows[value].null_count == rows.num_rows:
        return
    named = rows if "line" in rows.column_names else rows.append_column("line", rows["run"])
    clicked = show_chart(
        curve(named.select(["run", "iteration", "line", value]), value, title),
        width="content",
        key=f"curve_{title}",
        on_select="rerun",
        selection_mode=CLICK,
        alt=f"{title} by iteration",
    )
    for point in clicked["selection"][CLICK]:
        selection.open_page("tasks", run=point["run"], iteration=int(point["iteration"]))
