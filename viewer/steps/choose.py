"""The boxes that choose one trajectory, and the address that names one without its place."""

from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.plural import counted
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.queries.trajectory import places_of
from graphcredit.viewer.steps.facts import are_graded, outcome
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.text import code_label


def choose_steps() -> pa.Table | None:
    """Show boxes of run, iteration, task and trajectory; the default is a failed one.

    Returns:
        The steps of the chosen trajectory with their credit. For a store without steps, it shows a
        message and returns None.
    """
    store = viewed_store()
    complete_address(store)
    place = selection.choose_place(store)
    if place is None:
        return None
    where: dict[str, Any] = dict(zip(("run_id", "iteration"), place, strict=True))
    task = selection.choose_task(ask(queries.task_ids, **where))
    if task is None:
        missing.no_steps(store)
        return None
    trajectories = ask(queries.trajectories, **where, task_id=task)
    rows = {row["trajectory_id"]: row for row in trajectories.to_pylist()}
    is_graded = are_graded(trajectories)

    def title(trajectory_id: str) -> str:
        row = rows[trajectory_id]
        ending = outcome(row["success"], is_graded=is_graded)
        total = "null" if row["return"] is None else f"{row['return']:g}"
        return f"{ending}, return {total}, {counted(row['num_steps'], 'step')}: {trajectory_id}"

    trajectory = selection.choose("trajectory", "Trajectory", list(rows), show=title)
    return ask(queries.steps, **where, trajectory_id=trajectory)


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
        st.warning(f"The store has no trajectory {code_label(name)} there.")
        return
    if len(homes) > 1:
        st.caption(f"{len(homes)} trajectories have this id: the last one is shown.")
    selection.select(**homes[0], trajectory=name, step=chosen.step)
