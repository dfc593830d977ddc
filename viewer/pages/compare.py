"""The Compare page: two estimators on the same steps."""

from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.log_text import one_line
from graphcredit.viewer.queries import compare as queries
from graphcredit.viewer.queries.estimators import estimators
from graphcredit.viewer.queries.truth import MARKS, Verdict, progress_of, true_change, verdict
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.containers import choices
from graphcredit.viewer.widgets.tables import choose_row, signed_number
from graphcredit.viewer.widgets.text import show_text

_NUM_ROWS = 200
"""Most steps to list."""


def show() -> None:
    """Show the page."""
    st.header("Compare")
    store = viewed_store()
    with choices("compare"):
        place = selection.choose_place(store)
        if place is None:
            return
        run, iteration = place
        names = ask(estimators, run_id=run, iteration=iteration)
        estimator = selection.choose_estimator(names)
        if estimator is None:
            missing.no_credit(store, run, iteration)
            return
        others = [name for name in names if name != estimator]
        other = selection.choose("other", "Other estimator", others)
    missing.doubtful_credit(run, iteration)
    if other is None:
        missing.no_second_estimator(store, run, iteration, estimator)
    else:
        _estimators(run, iteration, estimator, other)


def _estimators(run: str, iteration: int, left: str, right: str) -> None:
    where: dict[str, Any] = {"run_id": run, "iteration": iteration, "left": left, "right": right}
    agreement = ask(queries.agreement, **where)
    if agreement.num_rows == 0:
        st.info("No step of this iteration has an advantage by both estimators.")
        return
    whole = agreement.slice(0, 1).to_pylist()[0]
    _measures(whole["num_steps"], whole["correlation"], whole["flip_share"])
    _against_truth(where, left, right)
    _tasks(agreement.slice(1))
    st.subheader("The steps that differ most")
    st.caption(
        "Differences count in standard deviations of each side. Tick a row to see the step in its "
        "rollout."
    )
    only_flips = st.toggle("Only sign flips", key="flips", bind="query-params")
    steps = ask(queries.differing_steps, **where, only_flips=only_flips, num_rows=_NUM_ROWS)
    _rows(steps, {"left": left, "right": right})


def _with_truth(rows: pa.Table) -> pa.Table:
    """Return the columns to show; with the true distance and who agrees, where it was logged."""
    shown = rows.select(["task_id", "action", "left", "right", "trajectory_id", "step_index"])
    if "oracle_distance" not in rows.column_names:
        return shown
    steps = rows.to_pylist()
    changes = [true_change(step) for step in steps]
    if not any(changes):
        return shown
    sides = ("left", "right")
    verdicts: list[list[Verdict | None]] = [
        [verdict(step[side], progress_of(step)) for side in sides] for step in steps
    ]
    marks = [" ".join(MARKS[one] or "–" for one in both) if any(both) else "" for both in verdicts]
    shown = shown.add_column(4, "truth", pa.array(marks, pa.string()))
    return shown.add_column(5, "true", pa.array(changes, pa.string()))


def _measures(number: int, correlation: float | None, flip_share: float) -> None:
    places = st.columns(3)
    places[0].metric("Steps compared", f"{number:,}", border=True)
    shown = "–" if correlation is None else f"{correlation:.3f}"
    places[1].metric("Correlation", shown, border=True)
    places[2].metric("Sign flips", f"{flip_share:.1%}", border=True)


def _against_truth(where: dict[str, Any], left: str, right: str) -> None:
    """Say how often each side has the sign of the true progress, where that was logged."""
    (row,) = ask(queries.truth_agreement, **where).to_pylist()
    shares = [
        f"{name} on {agreeing / num_judged:.0%} of {num_judged:,} steps"
        for name, agreeing, num_judged in (
            (left, row["agreeing_left"], row["num_left"]),
            (right, row["agreeing_right"], row["num_right"]),
        )
        if num_judged
    ]
    if shares:
        show_text(f"The advantage has the sign of the true progress: {', '.join(shares)}.")


def _tasks(agreement: pa.Table) -> None:
    st.caption("Tasks with the most sign flips first. Tick a row to see its graph.")
    columns = ("task_id", "num_steps", "correlation", "flip_share")
    row = choose_row(agreement, columns, key="compared_tasks", title="Agreement by task")
    if row is not None:
        selection.open_page("graph", task=agreement["task_id"][row].as_py())


def _rows(rows: pa.Table, names: dict[str, str]) -> None:
    if rows.num_rows == 0:
        st.caption("There are no differences.")
        return
    shown = _with_truth(rows)
    row = choose_row(
        shown,
        shown.column_names,
        key="differing",
        title="What differs most",
        config={side: signed_number(one_line(name)) for side, name in names.items()},
    )
    if row is not None:
        selection.open_row(rows, row)
