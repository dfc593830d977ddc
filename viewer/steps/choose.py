"""The select boxes for one trajectory, for every page that shows one."""

from typing import Any

import pyarrow as pa

from graphcredit.store.plural import counted
from graphcredit.viewer.queries import trajectory as queries
from graphcredit.viewer.steps.facts import outcome
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.address import complete_address
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.selection import choose, choose_iteration, choose_run, choose_task


def choose_steps() -> pa.Table | None:
    """Show boxes of run, iteration, task and trajectory; the default is a failed one.

    Returns:
        The steps of the chosen trajectory with their credit. For a store without steps, it shows a
        message and returns None.
    """
    store = viewed_store()
    complete_address(store)
    run = choose_run(store)
    iteration = None if run is None else choose_iteration(store, run)
    if run is None or iteration is None:
        missing.no_steps(store)
        return None
    where: dict[str, Any] = {"run_id": run, "iteration": iteration}
    task = choose_task(ask(queries.task_ids, **where))
    if task is None:
        missing.no_steps(store)
        return None
    found = ask(queries.trajectories, **where, task_id=task).to_pylist()
    rows = {row["trajectory_id"]: row for row in found}

    def title(trajectory_id: str) -> str:
        row = rows[trajectory_id]
        ending = outcome(row["success"])
        total = "null" if row["return"] is None else f"{row['return']:g}"
        return f"{ending}, return {total}, {counted(row['num_steps'], 'step')}: {trajectory_id}"

    trajectory = choose("trajectory", "Trajectory", list(rows), show=title)
    return ask(queries.steps, **where, trajectory_id=trajectory)
