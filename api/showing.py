"""A task's graph or a trajectory as a page, which a notebook shows in its place."""

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import pyarrow as pa

from graphcredit.store.errors import InputError, system_errors
from graphcredit.store.layout import AnyStore, Store, open_store
from graphcredit.store.log_text import in_html, named
from graphcredit.store.near_names import did_you_mean
from graphcredit.viewer.graph.drawing import draw_part
from graphcredit.viewer.graph.export import graph_html
from graphcredit.viewer.graph.matters import readable_part
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from graphcredit.viewer.queries.estimators import estimators
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.trajectory import steps
from graphcredit.viewer.queries.views import answer
from graphcredit.viewer.steps.html_export import trajectory_page
from graphcredit.viewer.steps.why_of_task import why_of_task

_TRAJECTORIES = "SELECT DISTINCT trajectory_id FROM steps"


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page that needs no server and no network."""

    html: str = field(repr=False)
    """The whole document; text of the log is escaped in it."""
    title: str
    needs_scripts: bool
    """Whether it draws by a script."""
    height: int = 560
    """Pixels in a notebook."""

    def _repr_html_(self) -> str:
        """Return a frame for a notebook. Its content cannot reach the notebook's own page."""
        allowed = "allow-scripts" if self.needs_scripts else ""
        return (
            f'<iframe title="{in_html(self.title)}" sandbox="{allowed}" style="width:100%;'
            f'height:{self.height}px;border:0" srcdoc="{escape(self.html)}"></iframe>'
        )

    @system_errors()
    def save(self, path: Path | str) -> None:
        """Write the page to a file.

        Raises:
            PathError: The file cannot be written.
        """
        Path(path).write_text(self.html, encoding="utf-8")


def show(
    store: AnyStore,
    *,
    task_id: str | None = None,
    trajectory_id: str | None = None,
    estimator: str | None = None,
    run_id: str | None = None,
    iteration: int | None = None,
) -> Page:
    """Return the state graph of a task, or a trajectory step by step, for a notebook or a file.

    Example:
        graphcredit.show("store", task_id="kitchen-12")
        graphcredit.show("store", trajectory_id="x").save("x.html")

    Args:
        store: A store, or its path.
        task_id: The task whose graph to show.
        trajectory_id: The trajectory to show.
        estimator: The estimator whose advantage colours the graph, or stands first; by default the
            one that distinguishes steps best.
        run_id: The run; not needed if there is only one.
        iteration: The iteration, likewise.

    Raises:
        InputError: Not exactly one of task and trajectory is named; there is none of that name; or
            a graph has no credit by that estimator.
    """
    if (task_id is None) == (trajectory_id is None):
        raise InputError(
            f"show needs a task_id or a trajectory_id: got {task_id!r} and {trajectory_id!r}"
        )
    opened = open_store(store)
    run, number = opened.one_iteration(run_id, iteration)
    if estimator is None:
        estimator = next(iter(estimators(opened, run_id=run, iteration=number)), None)
    if task_id is not None:
        return _graph(opened, run, number, task_id, estimator)
    return _trajectory(opened, run, number, str(trajectory_id), estimator)


def _graph(store: Store, run: str, iteration: int, task_id: str, estimator: str | None) -> Page:
    if estimator is None:
        raise InputError(
            f"run {run}, iteration {iteration} of {store.root} must have credit to show its graph: "
            "found none. `graphcredit.credit(store)` assigns it"
        )
    graph, shown, steps_of_task, shading = graph_of_task(store, run, iteration, task_id, estimator)
    title = f"{named(task_id)} · run {run}, iteration {iteration}"
    if len(shown.nodes) < len(graph.nodes):
        title += f" · {len(shown.nodes):,} of {len(graph.nodes):,} states"
    html = graph_html(
        draw_part(shown, graph, shading, title=title),
        shown,
        steps_of_task,
        path=[],
        column=f"{estimator}_advantage",
        title=title,
    )
    return Page(html=html, title=title, needs_scripts=True)


def graph_of_task(
    store: Store, run: str, iteration: int, task_id: str, estimator: str
) -> tuple[TaskGraph, TaskGraph, pa.Table, Shading]:
    """Return a task's graph, what is shown of it, its steps, and the meaning of the colours."""
    column = f"{estimator}_advantage"
    graph = read_task_graph(store, run_id=run, iteration=iteration, task_id=task_id, column=column)
    steps_of_task = task_steps(store, run_id=run, iteration=iteration, task_id=task_id)
    shading = Shading(advantage=f"{estimator} advantage")
    return graph, readable_part(graph, steps_of_task), steps_of_task, shading


def _trajectory(
    store: Store, run: str, iteration: int, trajectory_id: str, estimator: str | None
) -> Page:
    table = steps(store, run_id=run, iteration=iteration, trajectory_id=trajectory_id)
    if not table.num_rows:
        names = answer(store, _TRAJECTORIES, run_id=run, iteration=iteration).column(0).to_pylist()
        raise InputError(
            f"run {run}, iteration {iteration} of {store.root} has no rollout {trajectory_id!r}."
            + did_you_mean(trajectory_id, names)
        )
    if estimator is not None and f"{estimator}_advantage" not in table.column_names:
        raise InputError(f"{store.root} has no credit by {estimator!r} for {trajectory_id!r}")
    title = f"run {run}, iteration {iteration}"
    task_id = table["task_id"][0].as_py()
    whys = why_of_task(store, run_id=run, iteration=iteration, task_id=task_id)
    why = whys.get(trajectory_id)
    html = trajectory_page(table, title=title, estimator=estimator, why=why)
    return Page(html=html, title=f"{title}, {named(trajectory_id)}", needs_scripts=False)
