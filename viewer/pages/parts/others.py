"""The actions of a group in the state of a step, and their outcomes, on the Trajectory page."""

from typing import Any

import streamlit as st

from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.steps import alternatives
from graphcredit.viewer.steps.shown import Shown
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.text import show_box, show_text

_MOST_OUTCOMES = 8
"""Most actions and outcomes to list one by one."""


def show_others(shown: Shown) -> None:
    """Show what the group did in the state of a step, and where it led."""
    row = shown.step
    here: dict[str, Any] = {
        "task_id": shown.task,
        "state_id": row["state_id"],
        "estimator": shown.estimator,
    }
    outcomes = ask(queries.outcomes_here, **shown.where, **here).to_pylist()
    st.subheader("What others did in this state")
    show_text(" ".join(alternatives.summary(outcomes, row["action"])))
    if sum(other["num_steps"] for other in outcomes) == 1:
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
