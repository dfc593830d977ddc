"""The list of steps whose credit contradicts the outcome, on the Tasks page."""

import pyarrow as pa
import streamlit as st

from graphcredit.viewer.queries.surprises import against_outcome
from graphcredit.viewer.queries.truth import (
    marked,
    progress_of,
    seen_change,
    true_change,
    verdict,
)
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.text import label, show_table

_STEP_COLUMNS = {
    "action": "action",
    "advantage": st.column_config.NumberColumn(format="%+.3f"),
    "truth": st.column_config.TextColumn(
        help="Whether the advantage has the sign of the true progress: how much nearer to the "
        "goal the step led, as the environment knows it. Empty where one of them is 0 or unknown.",
    ),
    "seen": st.column_config.TextColumn(
        "seen distance",
        help="Cost of the cheapest way to the goal that the group saw, before and after the step. "
        "Estimators know no other.",
    ),
    "true": st.column_config.TextColumn(
        "true distance", help="The same as the environment knows it, where it was logged."
    ),
    "q_minus_v": st.column_config.NumberColumn(
        "Q - V",
        format="%+.3f",
        help="What the action changed of the chance of success when it was replayed.",
    ),
    "task_id": "task",
    "trajectory_id": "trajectory",
    "step_index": "step",
}

_OUTCOMES = {"credit in failures": False, "blame in successes": True}
"""Kinds of steps against the outcome: title to whether the trajectory succeeded."""

_MOST_SURPRISES = 500


def show_against_outcome(run: str, iteration: int, estimator: str) -> None:
    """Show steps whose credit contradicts the outcome, such as good steps of failures."""
    st.subheader("Against the outcome")
    kind = st.segmented_control(
        "What",
        list(_OUTCOMES),
        default=next(iter(_OUTCOMES)),
        required=True,
        key="against",
        bind="query-params",
        label_visibility="collapsed",
    )
    success = _OUTCOMES[kind]
    found = ask(
        against_outcome,
        run_id=run,
        iteration=iteration,
        estimator=estimator,
        success=success,
        num_rows=_MOST_SURPRISES,
    )
    if not found.num_rows:
        st.caption(f"{label(estimator)} gives no {kind}.")
        return
    which = "most blamed step of each success" if success else "most credited step of each failure"
    shown = _with_truth(found)
    st.caption(f"The {which}, in all tasks.{_judged(shown)} Select a row to see the step, and why.")
    chosen = show_table(
        shown,
        column_config=_STEP_COLUMNS,
        column_order=[n for n in _STEP_COLUMNS if shown[n].null_count < shown.num_rows],
        key="against_outcome",
        on_select="rerun",
        selection_mode="single-row",
        alt="Steps whose credit goes against the outcome",
    )
    for row in chosen["selection"]["rows"]:
        step = found.slice(row, 1).to_pylist()[0]
        selection.open_page(
            "trajectory",
            task=step["task_id"],
            trajectory=step["trajectory_id"],
            step=step["step_index"],
        )


def _with_truth(found: pa.Table) -> pa.Table:
    """Return the steps with their distances as texts, and what the truth says of their credit."""
    rows = found.to_pylist()
    columns = {
        "truth": [marked(verdict(row["advantage"], progress_of(row))) for row in rows],
        "seen": [seen_change(row) for row in rows],
        "true": [true_change(row) for row in rows],
    }
    for name, values in columns.items():
        found = found.append_column(name, pa.array(values, pa.string()))
    return found


def _judged(shown: pa.Table) -> str:
    said = [value for value in shown["truth"].to_pylist() if value is not None]
    if not said:
        return ""
    return f" The true progress agrees with {said.count(marked('agrees'))} of {len(said)}."
