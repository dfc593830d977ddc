"""The page of a task in a bundle: its state graph, and a list of its trajectories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from graphcredit.store.plural import counted
from graphcredit.viewer.bundle import names
from graphcredit.viewer.bundle.html import (
    GRAPH_SCRIPT,
    GRAPH_STYLE,
    LIBRARY,
    document,
    link,
    navigation,
    number,
    table,
    text,
)
from graphcredit.viewer.graph.drawing import draw_part
from graphcredit.viewer.graph.export import Site, graph_html
from graphcredit.viewer.graph.facts import with_shown
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import TaskGraph
from graphcredit.viewer.graph.visible_part import READABLE, around, best_path
from graphcredit.viewer.steps import facts
from graphcredit.viewer.widgets.text import one_line

_STEPS_OF_A_TRANSITION = 1
"""Steps to list of each: the bundle has all of them on the pages of their trajectories."""

_LISTED = ("trajectory_id", "step_index", "state_id", "next_state_id", "action", "succeeded")
"""What is said of these steps, besides the advantage; the rest is on the trajectory's page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphOfTask:
    """What is drawn of a task with credit."""

    graph: TaskGraph
    steps: pa.Table
    """From `queries.graphs.task_steps`."""
    estimator: str
    """Whose credit is shown."""


def task_page(
    title: str,
    *,
    number_of_task: int,
    trajectories: Mapping[str, pa.Table],
    drawn: GraphOfTask | None,
) -> str:
    """Return the page.

    Args:
        title: Its heading.
        number_of_task: Number of its file.
        trajectories: Name to the steps with their credit, in the order of their files.
        drawn: The graph; None without credit.
    """
    above = navigation([("../index.html", "All tasks")])
    estimator = None if drawn is None else drawn.estimator
    below = _trajectories(number_of_task, trajectories, estimator)
    if drawn is None:
        note = "<p>No credit was assigned to it, so there is no graph.</p>"
        return document(title, f"{above}<h1>{text(one_line(title, 400))}</h1>{note}{below}")
    graph, column = drawn.graph, f"{drawn.estimator}_advantage"
    shown = graph.part(_readable(graph))
    if len(shown.nodes) < len(graph.nodes):
        part = f"{len(shown.nodes):,} of {len(graph.nodes):,} states are drawn"
        below = f"<p>{part}: those around the best path.</p>{below}"
    shading = Shading(advantage=f"{drawn.estimator} advantage")
    return graph_html(
        draw_part(shown, layers_of(graph), shading),
        shown,
        with_shown(drawn.steps.select([*_LISTED, column]), column, None),
        path=[],
        ranked_by=shading.advantage,
        title=title,
        most_steps=_STEPS_OF_A_TRANSITION,
        site=Site(
            scripts=(f"../{LIBRARY}", f"../{GRAPH_SCRIPT}"),
            style=f"../{GRAPH_STYLE}",
            above=above,
            below=below,
        ),
    )


def _readable(graph: TaskGraph) -> frozenset[int]:
    """Return all states of a small graph; of a greater one, those around its best path."""
    if len(graph.nodes) <= READABLE:
        return frozenset(node.state_id for node in graph.nodes)
    return around(graph, best_path(graph), 1)


def _trajectories(task: int, trajectories: Mapping[str, pa.Table], estimator: str | None) -> str:
    rows = [
        [
            link(names.trajectory_file(task, index), name),
            facts.outcome(steps["success"][-1].as_py()),
            counted(steps.num_rows, "step"),
            facts.total(steps),
            *_extremes(names.trajectory_file(task, index), steps, estimator),
        ]
        for index, (name, steps) in enumerate(trajectories.items())
    ]
    heads = ("trajectory", "outcome", "length", "return", "highest advantage", "lowest advantage")
    return "<h2>Trajectories</h2>" + table(heads, rows)


def _extremes(file: str, steps: pa.Table, estimator: str | None) -> Sequence[str]:
    if estimator not in facts.estimators(steps):
        return ("", "")
    return [
        link(f"{file}#step-{steps['step_index'][row].as_py()}", steps["action"][row].as_py(), 40)
        + f" {number(value, '+.2f')}"
        for _, row, value in facts.extreme_steps(steps, estimator)
    ]
