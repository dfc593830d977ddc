"""The first page of a bundle: the tasks of each iteration, with outcomes and credit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphcredit.store.log_text import in_html, one_line
from graphcredit.store.plural import counted
from graphcredit.viewer.bundle.choice import Chapter
from graphcredit.viewer.bundle.html import (
    document,
    folder,
    histogram,
    link,
    number,
    share,
    table,
    task_file,
    warnings,
)
from graphcredit.viewer.widgets.doubts import doubts_of_facts


def index_page(run_id: str, chapters: Sequence[Chapter], choice: str) -> str:
    """Return the page."""
    parts = [f"<h1>Run {in_html(run_id)}</h1>"]
    if choice:
        parts.append(f"<p>A part of it: {in_html(choice)}.</p>")
    for chapter in chapters:
        parts += _chapter(chapter, is_open=chapter is chapters[-1])
    return document(f"{run_id} · graphcredit", "\n".join(parts))


def _chapter(chapter: Chapter, *, is_open: bool) -> Iterator[str]:
    rows = chapter.tasks.to_pylist()
    judged = [row for row in rows if row["success_rate"] is not None]
    won = sum(row["success_rate"] * row["num_trajectories"] for row in judged)
    total = counted(sum(row["num_trajectories"] for row in rows), "complete rollout")
    summary = f"Iteration {chapter.iteration}: {counted(len(rows), 'task')}, "
    summary += f"{won:.0f} of {total} succeeded" if judged else total
    yield f"<details{' open' if is_open else ''}><summary><b>{summary}</b></summary>"
    yield warnings(chapter.doubts)
    if chapter.estimator is None:
        yield "<p>No credit was assigned to it.</p>"
    else:
        yield (
            f"<p>Credit by {in_html(chapter.estimator)}, the tasks with the widest spread first. "
            "The bars are steps by advantage, from blame to credit, on one scale.</p>"
        )
    files = chapter.files
    doubts = doubts_of_facts(chapter.tasks)
    listed = zip(rows, doubts, strict=True)
    yield table(_HEADS, (_row(chapter, row, files[row["task_id"]], why) for row, why in listed))
    yield "</details>"


_HEADS = (
    "task",
    "asks for",
    "success",
    "doubts",
    "trajectories",
    "return",
    "length",
    "states",
    "spread",
    "advantages",
)


def _row(
    chapter: Chapter, row: Mapping[str, Any], number_of_file: int, doubt: str | None
) -> list[str]:
    file = task_file(number_of_file)
    incomplete = f" + {row['num_incomplete']} incomplete" if row["num_incomplete"] else ""
    return [
        link(f"{folder(chapter.iteration)}/{file}", row["task_id"]),
        in_html(one_line(row["instruction"] or "", 120)),
        share(row["success_rate"]),
        doubt or "",
        f"{row['num_trajectories']}{incomplete}",
        number(row["mean_return"]),
        number(row["mean_length"], ".1f"),
        number(row["num_states"], "d"),
        number(row["advantage_spread"]),
        histogram(row["advantages"]),
    ]
