"""Choose the graph of the Graph page, and what it is compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.store.plural import counted
from graphcredit.viewer.graph import facts
from graphcredit.viewer.graph.task_graph import Ends, TaskGraph, read_task_graph
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
    other: str | None = None
    """The estimator to compare with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Other:
    """The other side of a comparison; without one, nothing is subtracted."""

    name: str = ""
    """What follows the name of the advantage."""
    of_edges: Mapping[Ends, float | None] | None = None
    """Its mean advantages by the transitions of the shown graph."""
    values: str | None = None
    """The column to subtract from single steps."""


def other_side(place: GraphPlace) -> Other:
    """Return the other side of the comparison; one that cannot be read is named, and is empty."""
    if place.other is None:
        return Other()
    with missing.guarded("The other side of the comparison"):
        column = f"{place.other}_advantage"
        means = {edge.ends: edge.advantage for edge in read_graph(place, column).edges}
        return Other(name=f" − {place.other}", of_edges=means, values=column)
    return Other(name=f" − {place.other}", of_edges={})


def choose_place(store: Store) -> GraphPlace | None:
    """Show boxes of run, iteration, task, estimator and the other side of a comparison."""
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
    place = GraphPlace(run_id=run_id, iteration=iteration, task_id=task_id, estimator=estimator)
    return replace(place, other=_choose_other(place, names))


def _choose_other(place: GraphPlace, names: Sequence[str]) -> str | None:
    return selection.choose(
        "other",
        "Compare with",
        [name for name in names if name != place.estimator],
        nothing="nothing",
        help="Edges then show the difference. Edges with opposite signs are marked yellow.",
    )


def choose_trajectory(steps: pa.Table) -> str | None:
    """Show a box of the trajectories that can be laid over the graph."""
    there = facts.trajectories(steps)

    def show(name: str) -> str:
        return f"{there[name].ending} · {counted(there[name].num_steps, 'step')} · {name}"

    return selection.choose(
        "trajectory", "Rollout laid over it", list(there), nothing="none", show=show, width=230
    )


def read_graph(place: GraphPlace, column: str) -> TaskGraph:
    """Return the graph of the place's task, with an advantage on its edges."""
    return ask(
        read_task_graph,
        run_id=place.run_id,
        iteration=place.iteration,
        task_id=place.task_id,
        column=column,
    )
