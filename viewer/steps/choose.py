"""The boxes that choose one trajectory, and the address that names one without its place."""

from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.plural import counted
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.queries.estimators import estimators
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.outcomes import are_graded, outcome
from graphcredit.viewer.queries.trajectory import places_of
from graphcredit.viewer.steps import facts
from graphcredit.viewer.steps.shown import Shown, opening_row
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.containers import choices
from graphcredit.viewer.widgets.text import code_label


def choose_steps() -> Shown | None:
    """Show boxes of run, iteration, task, trajectory and estimator; the default is a failed one.

    An address without a step opens at the one that `opening_row` names, and has it then. For a
    store without steps, it shows a message and returns None.
    """
    store = viewed_store()
    complete_address(store)
    with choices("trajectory"):
        place = selection.choose_place(store)
        if place is None:
            return None
        where: dict[str, Any] = dict(zip(("run_id", "iteration"), place, strict=True))
        task = selection.choose_task(ask(queries.task_ids, **where))
        if task is None:
            missing.no_steps(store)
            return None
        trajectories = ask(queries.trajectories, **where, task_id=task)
        name = _choose_trajectory(trajectories)
        names = ask(estimators, **where)
        estimator = selection.choose_estimator(names)
    table = ask(queries.steps, **where, trajectory_id=name)
    group = ask(task_steps, **where, task_id=task)
    estimator = estimator if estimator in facts.estimators(table) else None
    return Shown(
        **where,
        task=task,
        name=name,
        table=table,
        row=_row(table, group, estimator),
        group=group,
        names=names,
        estimator=estimator,
        ending=facts.ending(table, is_graded=_are_graded(trajectories)),
    )


def _are_graded(trajectories: pa.Table) -> bool:
    return are_graded(trajectories.filter(trajectories["is_ended"]))


def _choose_trajectory(trajectories: pa.Table) -> str:
    rows = {row["trajectory_id"]: row for row in trajectories.to_pylist()}
    is_graded = _are_graded(trajectories)

    def title(trajectory_id: str) -> str:
        row = rows[trajectory_id]
        ending = outcome(row["success"], is_graded=is_graded, is_ended=row["is_ended"])
        total = "null" if row["return"] is None else f"{row['return']:g}"
        return f"{ending}, return {total}, {counted(row['num_steps'], 'step')}: {trajectory_id}"

    name = selection.choose("trajectory", "Trajectory", list(rows), show=title)
    assert name is not None
    return name


def _row(table: pa.Table, group: pa.Table, estimator: str | None) -> int:
    """Return the row of the step of the address, which is put there if it has none."""
    wanted = selection.current().step
    if wanted is None:
        wanted = 0 if estimator is None else opening_row(table, group, estimator)
        selection.select(step=wanted)
    if wanted >= table.num_rows:
        st.warning(f"The rollout has {counted(table.num_rows, 'step')}: the last one is shown.")
        wanted = table.num_rows - 1
        selection.select(step=wanted)
    return wanted


def complete_address(store: Store) -> None:
    """Put run, iteration and task of the address's trajectory into the address.

    A trajectory's id is unique in an iteration; of several, the last iteration of the last run
    counts. What the address does say restricts the search.
    """
    chosen = selection.current()
    name = chosen.trajectory
    if name is None or None not in (chosen.run, chosen.iteration, chosen.task):
        return
    runs = (
        store.runs() if chosen.run is None else [run for run in store.runs() if run == chosen.run]
    )
    homes = [
        {"run": run, **place}
        for run in reversed(runs)
        for place in ask(
            places_of, run_id=run, iteration=None, trajectory_id=name, number=chosen.iteration
        ).to_pylist()
    ]
    if not homes:
        st.warning(f"The store has no rollout {code_label(name)} there.")
        return
    if len(homes) > 1:
        st.caption(f"{len(homes)} rollouts have this id: the last one is shown.")
    selection.select(**homes[0], trajectory=name, step=chosen.step)
