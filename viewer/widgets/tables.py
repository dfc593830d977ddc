"""The one kind of list: its rows can be chosen, and its columns are the same on every page."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.viewer.widgets.text import show_table

_NUMBER, _TEXT = st.column_config.NumberColumn, st.column_config.TextColumn

COLUMNS: Mapping[str, Any] = {
    "run": _TEXT("run", pinned=True),
    "iteration": _NUMBER("iteration", pinned=True),
    "task_id": _TEXT("task", pinned=True),
    "instruction": _TEXT("asks for", width=260, help="In the first step of one of its rollouts."),
    "success_rate": st.column_config.ProgressColumn(
        "success",
        min_value=0.0,
        max_value=1.0,
        format="percent",
        help="Share of complete rollouts.",
    ),
    "doubts": _TEXT(
        "doubts",
        help="Why not to rely on its credit: a group of one, nobody won, equal returns, steps that "
        "are alone in their state, credit that is out of date.",
    ),
    "mean_return": _NUMBER("return", format="%.3f", help="Mean return."),
    "mean_length": _NUMBER("length", format="%.1f", help="Mean length in steps."),
    "invalid_share": _NUMBER(
        "invalid", format="percent", help="Steps whose action could not be parsed or was refused."
    ),
    "degenerate_share": _NUMBER(
        "degenerate",
        format="percent",
        help="Groups whose rollouts all have the same return, so that they teach nothing.",
    ),
    "advantage_spread": _NUMBER(
        "spread",
        format="%.3f",
        help="Standard deviation of the estimator's advantages over the group's steps: "
        "at 0 the group teaches nothing.",
    ),
    "advantages": st.column_config.BarChartColumn(
        "advantages",
        help="Steps by advantage: blame on the left, 0 in the middle, credit on the right. All "
        "tasks have the same scale.",
    ),
    "returns": st.column_config.BarChartColumn("returns", help="One bar per rollout."),
    "disagreement": _NUMBER(
        "disagree",
        format="percent",
        help="Steps to which one estimator gives credit and another one blame.",
    ),
    "num_groups": _NUMBER("groups"),
    "num_trajectories": _NUMBER("complete", help="Complete rollouts."),
    "num_credited": _NUMBER(
        "credited",
        help="Complete rollouts with credit. If they are fewer than the complete ones, "
        "assign credit again.",
    ),
    "num_incomplete": _NUMBER(
        "incomplete", help="Rollouts that lack steps, an end or a value. They get no credit."
    ),
    "num_states": _NUMBER("states", help="The goal is one of them."),
    "num_merges": _NUMBER("merges", help="Texts that were merged into the state of another text."),
    "singleton_share": _NUMBER(
        "singletons",
        format="percent",
        help="Steps without another step of the group from the same state to compare with.",
    ),
    "num_steps": _NUMBER("steps"),
}
"""Name of a query's column to its title, form and help."""


def choose_row(rows: pa.Table, columns: Sequence[str], *, key: str, title: str) -> int | None:
    """Show a list of which one row can be chosen, by a click or by Enter.

    Args:
        rows: The rows.
        columns: The columns to show, in order; those without any value are left out.
        key: Tells the list from others of the page.
        title: What the rows are, for a screen reader.

    Returns:
        The row that was chosen; None as long as there is none.
    """
    chosen = show_table(
        rows,
        column_config=COLUMNS,
        column_order=[name for name in columns if rows[name].null_count < rows.num_rows],
        key=key,
        alt=title,
        on_select="rerun",
        selection_mode="single-row",
    )
    return next(iter(chosen["selection"]["rows"]), None)
