"""The Tasks page's lists of trajectories, and of steps whose credit contradicts the outcome."""

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.viewer.queries.outcomes import outcome
from graphcredit.viewer.queries.trajectories import (
    ORDERS,
    OUTCOMES,
    against_outcome,
    found_trajectories,
)
from graphcredit.viewer.queries.truth import marked, progress_of, seen_change, true_change, verdict
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.containers import choices
from graphcredit.viewer.widgets.tables import choose_row
from graphcredit.viewer.widgets.text import label

_TRAJECTORIES = (
    *("task_id", "trajectory_id", "outcome", "num_steps", "return", "disagreement", "most"),
    "least",
)
_STEPS = (
    *("action", "advantage", "truth", "seen", "true"),
    *("task_id", "trajectory_id", "step_index"),
)
_OUTCOMES = {"credit without success": False, "blame in successes": True}
"""Kinds of steps against the outcome: title to whether the trajectory succeeded."""
_MOST_SURPRISES = 500


def show_trajectories(
    run: str, iteration: int, estimator: str | None, names: tuple[str, ...]
) -> None:
    """Show the filters, and the trajectories that they leave."""
    with choices("filters"):
        text = st.text_input("Find in names", key="text", bind="query-params")
        ending = st.selectbox("Outcome", list(OUTCOMES), key="outcome", bind="query-params")
        order = st.selectbox("First", list(ORDERS), key="order", bind="query-params")
    trajectories = ask(
        found_trajectories,
        run_id=run,
        iteration=iteration,
        estimator=estimator,
        others=names,
        outcome=ending,
        text=text.strip(),
        order=order,
    )
    _table(trajectories)


def _table(trajectories: pa.Table) -> None:
    total = trajectories["num_found"][0].as_py() if trajectories.num_rows else 0
    st.caption(
        counted(total, "rollout")
        + (
            f", the first {trajectories.num_rows:,} of them shown"
            if trajectories.num_rows < total
            else ""
        )
        + ". Tick a row to see its steps."
    )
    outcomes = [
        outcome(row["success"], is_graded=row["is_graded"], is_ended=row["is_complete"])
        for row in trajectories.select(["success", "is_graded", "is_complete"]).to_pylist()
    ]
    shown = trajectories.append_column("outcome", pa.array(outcomes, pa.string()))
    row = choose_row(shown, _TRAJECTORIES, key="trajectories_table", title="Rollouts")
    if row is not None:
        selection.open_row(trajectories, row)


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
    steps = ask(
        against_outcome,
        run_id=run,
        iteration=iteration,
        estimator=estimator,
        success=success,
        num_rows=_MOST_SURPRISES,
    )
    if not steps.num_rows:
        st.caption(f"{label(estimator)} gives no {kind}.")
        return
    which = "most blamed step with" if success else "most credited step without"
    shown = _with_truth(steps)
    st.caption(
        f"The {which} success of each rollout, in all tasks.{_judged(shown)} Tick a row to see the "
        "step, and why."
    )
    title = "Steps whose credit goes against the outcome"
    row = choose_row(shown, _STEPS, key="against_outcome", title=title)
    if row is not None:
        selection.open_row(shown, row)


def _with_truth(steps: pa.Table) -> pa.Table:
    """Return the steps with their distances as texts, and what the truth says of their credit."""
    rows = steps.to_pylist()
    columns = {
        "truth": [marked(verdict(row["advantage"], progress_of(row))) for row in rows],
        "seen": [seen_change(row) for row in rows],
        "true": [true_change(row) for row in rows],
    }
    for name, values in columns.items():
        steps = steps.append_column(name, pa.array(values, pa.string()))
    return steps


def _judged(shown: pa.Table) -> str:
    said = [value for value in shown["truth"].to_pylist() if value is not None]
    if not said:
        return ""
    return f" The true progress agrees with {said.count(marked('agrees'))} of {len(said)}."
