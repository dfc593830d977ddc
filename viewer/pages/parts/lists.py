"""The Tasks page's list of trajectories."""

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.viewer.queries.outcomes import outcome
from graphcredit.viewer.queries.trajectories import ORDERS, OUTCOMES, found_trajectories
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.containers import choices
from graphcredit.viewer.widgets.tables import choose_row

_TRAJECTORIES = (
    *("task_id", "trajectory_id", "outcome", "num_steps", "return", "disagreement", "most"),
    "least",
)


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
