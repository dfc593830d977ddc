"""The actions of a group in the state of a step, and their outcomes, on the Trajectory page."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.viewer.browser_fixes import opened
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.steps import alternatives
from graphcredit.viewer.steps.facts import outcome
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.tables import choose_row, signed_number
from graphcredit.viewer.widgets.text import show_box, show_text

_MOST_OUTCOMES = 8
"""Most actions and outcomes to list one by one."""


def show_others(
    here: Mapping[str, Any], table: pa.Table, step: int, *, go_to: Callable[..., None]
) -> None:
    """Show what the group did in the state of a step, and where it led.

    Args:
        here: Arguments of the queries about the state.
        table: The steps of the trajectory.
        step: Row of the step that is shown.
        go_to: Shows another step at once.
    """
    outcomes = ask(queries.outcomes_here, **here).to_pylist()
    row = table.slice(step, 1).to_pylist()[0]
    st.subheader("What others did in this state")
    show_text(" ".join(alternatives.summary(outcomes, row["action"])))
    num_steps = sum(other["num_steps"] for other in outcomes)
    if num_steps == 1:
        return
    shown_outcome = row["action"], row["next_state_id"]
    outcomes.sort(key=lambda other: (other["action"], other["next_state_id"]) != shown_outcome)
    for number, other in enumerate(outcomes[:_MOST_OUTCOMES]):
        is_here = (other["action"], other["next_state_id"]) == shown_outcome
        with st.expander(alternatives.label_of(other, is_here=is_here)):
            if is_here:
                st.caption("Where it led")
                show_box(row["next_state"], key=f"outcome_{number}")
            else:
                st.caption("Where it led: + only there, - only after the step that is shown")
                differs = alternatives.difference(row["next_state"], other["next_state"])
                show_box(differs, key=f"outcome_{number}")
    if len(outcomes) > _MOST_OUTCOMES:
        st.caption(f"{len(outcomes) - _MOST_OUTCOMES} more outcomes with less credit.")
    inside = opened(
        f"All {num_steps:,} steps from this state, ranked by advantage", key="elsewhere"
    )
    if inside is None:
        return
    with inside:
        elsewhere = ask(queries.steps_here, **here)
        chosen = _steps_here(elsewhere, table, step, here["estimator"], num_steps)
    if chosen is not None:
        go_to(trajectory=chosen[0], step=chosen[1])


def _steps_here(
    steps: pa.Table, table: pa.Table, step: int, estimator: str, num_steps: int
) -> tuple[str, int] | None:
    """List the steps from the same state that the query found; there are `num_steps` in total.

    Returns:
        Trajectory and step of the row that was clicked.
    """
    trajectory_id = table["trajectory_id"][step].as_py()
    rows = steps.to_pylist()
    here = [row["trajectory_id"] == trajectory_id and row["step_index"] == step for row in rows]
    shown = pa.table(
        {
            "here": ["▶" if is_here else "" for is_here in here],
            "action": steps["action"],
            f"{estimator} advantage": steps["advantage"],
            "outcome": [outcome(row["success"]) for row in rows],
            "return": steps["return"],
            "valid": steps["is_action_valid"],
            "trajectory": steps["trajectory_id"],
            "step": steps["step_index"],
        }
    )
    words = "Click a row to go to its step."
    if steps.num_rows < num_steps:
        words += f" Of {num_steps:,} steps, the {steps.num_rows:,} with the most credit are listed."
    st.caption(words)
    row = choose_row(
        shown,
        shown.column_names,
        key=f"elsewhere_{trajectory_id}_{step}",
        title="Steps from this state",
        config={f"{estimator} advantage": signed_number()},
        height=min(38 + 35 * len(rows), 320),
    )
    return None if row is None else (rows[row]["trajectory_id"], rows[row]["step_index"])
