"""Rollouts of runs as curves over their iterations, on the Runs page."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.log_text import one_line
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.charts import CLICK, curve, show_chart

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


def show_curves(store: Store, facts: pa.Table) -> None:
    """Show the curves of the chosen runs."""
    st.subheader("Over time")
    known = store.runs()
    runs = st.multiselect(
        "Runs", known, default=known[-_MOST_RUNS:], format_func=one_line, width=500, key="runs"
    )
    st.caption(
        "A click on a point shows the tasks of its iteration. A group with one return teaches "
        "nothing."
    )
    shown = facts.filter(pc.is_in(facts["run"], pa.array(runs, pa.string())))
    with st.container(horizontal=True):
        for name, title in _ROLLOUTS.items():
            _draw(shown, name, title)


def _draw(rows: pa.Table, value: str, title: str) -> None:
    """Draw a curve; a click on a point leads to the tasks of its iteration."""
    if rows[value].null_count == rows.num_rows:
        return
    clicked = show_chart(
        curve(rows.select(["run", "iteration", value]), value, title),
        width="content",
        key=f"curve_{title}",
        on_select="rerun",
        selection_mode=CLICK,
        alt=f"{title} by iteration",
    )
    for point in clicked["selection"][CLICK]:
        selection.open_page("tasks", run=point["run"], iteration=int(point["iteration"]))
