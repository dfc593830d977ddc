"""The Compare page: two estimators on the same steps, one in two iterations, or two rollouts."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.viewer.pages.parts.two_rollouts import KIND, show_two_rollouts
from graphcredit.viewer.queries import compare as queries
from graphcredit.viewer.queries.estimators import estimators
from graphcredit.viewer.queries.truth import MARKS, Verdict, progress_of, true_change, verdict
from graphcredit.viewer.steps.agreement import ActionPairs, agreement_map
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.charts import show_chart
from graphcredit.viewer.widgets.tables import choose_row, signed_number
from graphcredit.viewer.widgets.text import one_line, show_text

_NUM_ROWS = 200
"""Most steps to list."""

_KINDS = ("Two estimators", "Two iterations", KIND)


def show() -> None:
    """Show the page."""
    st.header("Compare")
    store = viewed_store()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = selection.choose_place(store)
        if place is None:
            return
        run, iteration = place
        names = ask(estimators, run_id=run, iteration=iteration)
        estimator = selection.choose_estimator(names)
        if estimator is None:
            missing.no_credit(store, run, iteration)
            return
        kind = st.segmented_control(
            "Compare", _KINDS, default=_KINDS[0], required=True, key="compare", bind="query-params"
        )
        other = None if kind == KIND else _choose_other(run, iteration, estimator, kind, names)
    missing.doubtful_credit(run, iteration)
    if kind == KIND:
        show_two_rollouts(run, iteration, estimator)
        return
    if other is None and kind == _KINDS[0]:
        missing.no_second_estimator(store, run, iteration, estimator)
    elif other is None:
        st.info("The store has no other iteration to compare this one with.")
    elif kind == _KINDS[0]:
        _estimators(run, iteration, estimator, other)
    else:
        _two_iterations(run, iteration, estimator, other)


def _iterations(run: str, iteration: int) -> list[str]:
    """Return the other iterations of the store as `run/iteration`, those of this run first."""
    store = viewed_store()
    runs = sorted(store.runs(), key=lambda name: (name != run, name))
    return [f"{r}/{i}" for r in runs for i in store.iterations(r) if (r, i) != (run, iteration)]


def _choose_other(
    run: str, iteration: int, estimator: str, kind: str, names: Sequence[str]
) -> str | None:
    """Show a select box for the other side; drop a choice that belongs to the other kind."""
    others = (
        [name for name in names if name != estimator]
        if kind == _KINDS[0]
        else _iterations(run, iteration)
    )
    if selection.current().other not in others:
        selection.select(other=others[0] if others else None)
    title = "Other estimator" if kind == _KINDS[0] else "Other iteration"
    return selection.choose("other", title, others)


def _estimators(run: str, iteration: int, left: str, right: str) -> None:
    where: dict[str, Any] = {"run_id": run, "iteration": iteration, "left": left, "right": right}
    agreement = ask(queries.agreement, **where)
    if agreement.num_rows == 0:
        st.info("No step of this iteration has an advantage by both estimators.")
        return
    whole = agreement.slice(0, 1).to_pylist()[0]
    _measures("Steps", whole["num_steps"], whole["correlation"], whole["flip_share"])
    _against_truth(where, left, right)
    picture, table = st.columns(2, gap="medium")
    with picture:
        cells = ask(queries.cells, **where)
        show_chart(agreement_map(cells, left=left, right=right, unit="steps"))
    with table:
        _tasks(agreement.slice(1))
    only_flips = _differing("steps")
    steps = ask(queries.differing_steps, **where, only_flips=only_flips, num_rows=_NUM_ROWS)
    _rows(steps, {"left": left, "right": right})


def _two_iterations(run: str, iteration: int, estimator: str, other: str) -> None:
    other_run, _, number = other.rpartition("/")
    here: dict[str, Any] = {"run_id": run, "iteration": iteration}
    there: dict[str, Any] = {"run_id": other_run, "iteration": int(number)}
    if estimator not in ask(estimators, **there):
        missing.no_credit(viewed_store(), other_run, int(number))
        return
    missing.doubtful_credit(other_run, int(number))
    pairs = ActionPairs.of(
        ask(queries.action_advantages, **here, estimator=estimator),
        ask(queries.action_advantages, **there, estimator=estimator),
    )
    st.caption("An action is compared if both iterations took it at the same text of a task.")
    if not len(pairs.key):
        st.info("The two iterations took no action in the same state.")
        return
    _measures("Actions", len(pairs.key), pairs.correlation(), float(pairs.is_flip().mean()))
    names = {"left": f"{run}/{iteration}", "right": other}
    show_chart(agreement_map(pairs.cells(), **names, unit="actions"), width=560)
    only_flips = _differing("actions")
    places = pairs.most_different(_NUM_ROWS, only_flips=only_flips)
    keys = pairs.key[places]
    named = ask(queries.actions_named, **here, keys=tuple(keys.tolist()))
    chosen = pa.table({"key": keys, "left": pairs.left[places], "right": pairs.right[places]})
    _rows(with_names(chosen, named), names)


def with_names(chosen: pa.Table, named: pa.Table) -> pa.Table:
    """Return the rows of `chosen`, in their order, with the actions and states of their keys."""
    of_key = {row["key"]: row for row in named.to_pylist()}
    return pa.Table.from_pylist(
        [row | of_key[row["key"]] for row in chosen.to_pylist() if row["key"] in of_key]
    )


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


def _measures(unit: str, number: int, correlation: float | None, flip_share: float) -> None:
    places = st.columns(3)
    places[0].metric(f"{unit} compared", f"{number:,}", border=True)
    shown = "–" if correlation is None else f"{correlation:.3f}"
    places[1].metric("Correlation", shown, border=True, help="Pearson's correlation.")
    places[2].metric(
        "Sign flips",
        f"{flip_share:.1%}",
        border=True,
        help="Share to which one side gives credit and the other blame.",
    )


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
    st.caption("Tasks with the most sign flips first. Click a row to see its graph.")
    columns = ("task_id", "num_steps", "correlation", "flip_share")
    row = choose_row(
        agreement, columns, key="compared_tasks", title="Agreement by task", height=330
    )
    if row is not None:
        selection.open_page("graph", task=agreement["task_id"][row].as_py())


def _differing(unit: str) -> bool:
    """Show the title of the last table; return whether only sign flips are wanted."""
    st.subheader(f"The {unit} that differ most")
    st.caption(
        "Differences count in standard deviations of each side. Click a row to see the step in its "
        "trajectory."
    )
    return st.toggle("Only sign flips", key="flips", bind="query-params")


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
