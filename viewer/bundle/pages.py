"""Write the pages of an iteration's tasks and trajectories."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.layout import Store
from graphcredit.store.parquet.notes import read_notes
from graphcredit.viewer.bundle import names
from graphcredit.viewer.bundle.chapter import Chapter
from graphcredit.viewer.bundle.html import navigation
from graphcredit.viewer.bundle.task_page import GraphOfTask, task_page
from graphcredit.viewer.graph.task_graph import read_task_graph
from graphcredit.viewer.queries.graphs import graph_tasks, task_steps
from graphcredit.viewer.queries.trajectory import steps_of_task
from graphcredit.viewer.steps.html_export import trajectory_page
from graphcredit.viewer.widgets.note_words import words_of_trajectory
from graphcredit.viewer.widgets.text import one_line


def write_pages(store: Store, chapter: Chapter, root: Path) -> Iterator[dict[str, str]]:
    """Write the pages of the tasks, one after the other.

    Args:
        store: The store.
        chapter: The iteration.
        root: The folder of the bundle.

    Yields:
        For each task, its trajectories with the addresses of their pages, from the bundle's index.
    """
    folder = root / names.folder(chapter.iteration)
    folder.mkdir()
    here: Any = {"run_id": chapter.run_id, "iteration": chapter.iteration}
    notes = read_notes(store, **here).to_pylist()
    drawable = set(graph_tasks(store, **here)) if chapter.estimator else set[str]()
    for task_id, number in chapter.files.items():
        trajectories = _by_trajectory(steps_of_task(store, **here, task_id=task_id))
        page = task_page(
            f"{task_id} · {chapter.name}",
            number_of_task=number,
            trajectories=trajectories,
            drawn=_graph(store, chapter, task_id) if task_id in drawable else None,
        )
        _write(folder / names.task_file(number), page)
        files = [names.trajectory_file(number, place) for place in range(len(trajectories))]
        for place, steps in enumerate(trajectories.values()):
            page = trajectory_page(
                steps,
                title=chapter.name,
                estimator=chapter.estimator,
                above=_navigation(number, task_id, files, place),
                is_brief=True,
                notes=words_of_trajectory(notes, steps["trajectory_id"][0].as_py()),
            )
            _write(folder / files[place], page)
        yield {
            name: f"{folder.name}/{file}" for name, file in zip(trajectories, files, strict=True)
        }


def _by_trajectory(rows: pa.Table) -> dict[str, pa.Table]:
    found = dict.fromkeys(rows["trajectory_id"].to_pylist())
    return {name: rows.filter(pc.field("trajectory_id") == name) for name in found}


def _graph(store: Store, chapter: Chapter, task_id: str) -> GraphOfTask:
    assert chapter.estimator is not None, "only with credit there are graphs"
    column = f"{chapter.estimator}_advantage"
    graph = read_task_graph(
        store,
        run_id=chapter.run_id,
        iteration=chapter.iteration,
        task_id=task_id,
        column=column,
    )
    steps = task_steps(store, run_id=chapter.run_id, iteration=chapter.iteration, task_id=task_id)
    return GraphOfTask(graph=graph, steps=steps, estimator=chapter.estimator)


def _navigation(task: int, task_id: str, files: list[str], place: int) -> str:
    links = [("../index.html", "All tasks"), (names.task_file(task), one_line(task_id))]
    if place > 0:
        links.append((files[place - 1], "Previous trajectory"))
    if place + 1 < len(files):
        links.append((files[place + 1], "Next trajectory"))
    return navigation(links)


def _write(path: Path, page: str) -> None:
    path.write_text(page, encoding="utf-8")
