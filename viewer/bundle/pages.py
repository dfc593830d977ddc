"""The pages of an iteration's tasks and trajectories in a bundle."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.layout import Store
from graphcredit.store.log_text import in_html, named
from graphcredit.store.plural import counted
from graphcredit.viewer.bundle.choice import Chapter
from graphcredit.viewer.bundle.html import (
    GRAPH_SCRIPT,
    GRAPH_STYLE,
    LIBRARY,
    document,
    folder,
    link,
    navigation,
    number,
    table,
    task_file,
    trajectory_file,
)
from graphcredit.viewer.graph.drawing import draw_part
from graphcredit.viewer.graph.export import Site, graph_html
from graphcredit.viewer.graph.matters import readable_part
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import read_task_graph
from graphcredit.viewer.graph.words import what_is_shown
from graphcredit.viewer.queries.graphs import graph_tasks, task_steps
from graphcredit.viewer.queries.outcomes import are_graded, outcome
from graphcredit.viewer.queries.trajectory import steps_of_task
from graphcredit.viewer.steps import facts
from graphcredit.viewer.steps.html_export import trajectory_page
from graphcredit.viewer.steps.why_of_task import why_of_task


def write_pages(store: Store, chapter: Chapter, root: Path) -> Iterator[int]:
    """Write the pages of the tasks, one after the other.

    Yields:
        For each task, the number of its trajectories.
    """
    target = root / folder(chapter.iteration)
    target.mkdir()
    here: Any = {"run_id": chapter.run_id, "iteration": chapter.iteration}
    drawable = set(graph_tasks(store, **here)) if chapter.estimator else set[str]()
    for task_id, file_number in chapter.files.items():
        trajectories = _by_trajectory(steps_of_task(store, **here, task_id=task_id))
        estimator = chapter.estimator if task_id in drawable else None
        page = _task_page(store, chapter, task_id, trajectories, estimator)
        _write(target / task_file(file_number), page)
        files = [trajectory_file(file_number, number) for number in range(len(trajectories))]
        whys = why_of_task(store, **here, task_id=task_id)
        for index, (name, steps) in enumerate(trajectories.items()):
            page = trajectory_page(
                steps,
                title=chapter.name,
                estimator=chapter.estimator,
                above=_navigation(file_number, task_id, files, index),
                is_brief=True,
                why=whys.get(name),
            )
            _write(target / files[index], page)
        yield len(trajectories)


def _by_trajectory(rows: pa.Table) -> dict[str, pa.Table]:
    names = dict.fromkeys(rows["trajectory_id"].to_pylist())
    return {name: rows.filter(pc.field("trajectory_id") == name) for name in names}


def _navigation(task: int, task_id: str, files: list[str], index: int) -> str:
    links = [("../index.html", "All tasks"), (task_file(task), named(task_id))]
    if index > 0:
        links.append((files[index - 1], "Previous rollout"))
    if index + 1 < len(files):
        links.append((files[index + 1], "Next rollout"))
    return navigation(links)


def _write(path: Path, page: str) -> None:
    path.write_text(page, encoding="utf-8")


_STEPS_OF_A_TRANSITION = 1
"""Steps to list of each: the bundle has all of them on the pages of their trajectories."""

_LISTED = ("trajectory_id", "step_index", "state_id", "next_state_id", "action", "succeeded")
"""What is said of these steps, besides the advantage; the rest is on the trajectory's page."""


def _task_page(
    store: Store,
    chapter: Chapter,
    task_id: str,
    trajectories: Mapping[str, pa.Table],
    estimator: str | None,
) -> str:
    """Return the page of a task.

    Args:
        store: The store.
        chapter: The iteration.
        task_id: The task.
        trajectories: Name to the steps with their credit, in the order of their files.
        estimator: Whose credit the graph shows; None without a graph.
    """
    title = f"{task_id} · {chapter.name}"
    above = navigation([("../index.html", "All tasks")])
    here: Any = {"run_id": chapter.run_id, "iteration": chapter.iteration, "task_id": task_id}
    steps = task_steps(store, **here)
    below = _trajectories(chapter.files[task_id], trajectories, estimator, steps)
    if estimator is None:
        note = "<p>No credit was assigned to it, so there is no graph.</p>"
        return document(title, f"{above}<h1>{in_html(named(title))}</h1>{note}{below}")
    column = f"{estimator}_advantage"
    graph = read_task_graph(store, **here, column=column)
    shading = Shading(advantage=f"{estimator} advantage")
    shown = readable_part(graph, steps)
    if len(shown.nodes) < len(graph.nodes):
        below = f"<p>{in_html(what_is_shown(graph, shown))}</p>{below}"
    return graph_html(
        draw_part(shown, graph, shading, title=title, steps=steps),
        shown,
        steps.select([*_LISTED, column]),
        path=[],
        column=column,
        title=title,
        most_steps=_STEPS_OF_A_TRANSITION,
        site=Site(
            scripts=(f"../{LIBRARY}", f"../{GRAPH_SCRIPT}"),
            style=f"../{GRAPH_STYLE}",
            above=above,
            below=below,
        ),
    )


def _trajectories(
    task: int, trajectories: Mapping[str, pa.Table], estimator: str | None, group: pa.Table
) -> str:
    wins = {name: steps["success"][-1].as_py() for name, steps in trajectories.items()}
    returns = [facts.total(steps) for steps in trajectories.values()]
    is_graded = are_graded(pa.table({"return": returns, "success": [*wins.values()]}))
    rows = [
        [
            link(trajectory_file(task, index), name),
            outcome(wins[name], is_graded=is_graded),
            counted(steps.num_rows, "step"),
            facts.total(steps),
            *_extremes(trajectory_file(task, index), steps, estimator, facts.telling(group, name)),
        ]
        for index, (name, steps) in enumerate(trajectories.items())
    ]
    heads = ("trajectory", "outcome", "length", "return", "most credit", "most blame")
    return "<h2>Trajectories</h2>" + table(heads, rows)


def _extremes(
    file: str, steps: pa.Table, estimator: str | None, telling: Sequence[int]
) -> Sequence[str]:
    """Return the cells of the most credited and of the most blamed step."""
    if estimator is None or estimator not in facts.estimators(steps):
        return ("", "")
    cells = {"Most credit": "", "Most blame": ""}
    for name, row, value in facts.extreme_steps(steps, estimator, telling):
        place = f"{file}#step-{steps['step_index'][row].as_py()}"
        cells[name] = link(place, steps["action"][row].as_py(), 40) + f" {number(value, '+.2f')}"
    return [cells["Most credit"], cells["Most blame"]]
