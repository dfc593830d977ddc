"""Choose the graph of the Graph page."""

from dataclasses import dataclass

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.store.plural import counted
from graphcredit.viewer.graph import facts
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from graphcredit.viewer.pages.parts import graph_controls as controls
from graphcredit.viewer.queries.estimators import estimators
from graphcredit.viewer.queries.graphs import graph_tasks
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphPlace:
    """Selection of the shown graph."""

    run_id: str
    iteration: int
    task_id: str
    estimator: str

    @property
    def column(self) -> str:
        """The advantage that colours the edges."""
        return f"{self.estimator}_advantage"


def choose_place(store: Store) -> GraphPlace | None:
    """Show boxes of run, iteration, task and estimator."""
    where = selection.choose_place(store)
    if where is None:
        return None
    run_id, iteration = where
    names = ask(estimators, run_id=run_id, iteration=iteration)
    tasks = ask(graph_tasks, run_id=run_id, iteration=iteration)
    if not names or not tasks:
        missing.no_credit(store, run_id, iteration)
        return None
    task_id = selection.choose_task(tasks)
    estimator = selection.choose_estimator(names)
    if task_id is None or estimator is None:
        return None
    controls.forget_when_changed((run_id, iteration, task_id))
    return GraphPlace(run_id=run_id, iteration=iteration, task_id=task_id, estimator=estimator)


def choose_trajectory(steps: pa.Table) -> str | None:
    """Show a box of the trajectories that can be laid over the graph."""
    there = facts.trajectories(steps)

    def show(name: str) -> str:
        return f"{there[name].ending} · {counted(there[name].num_steps, 'step')} · {name}"

    return selection.choose(
        "trajectory", "Rollout laid over it", list(there), nothing="none", show=show, width=230
    )


def read_graph(place: GraphPlace) -> TaskGraph:
    """Return the graph of the place's task, with the advantage on its edges."""
    return ask(
        read_task_graph,
        run_id=place.run_id,
        iteration=place.iteration,
        task_id=place.task_id,
        column=place.column,
    )
