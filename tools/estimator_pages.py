"""A page for each estimator of the site, with what it gives every step of one small group."""

import inspect
import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import graphcredit
from graphcredit.credit.estimators.table import ESTIMATORS, Estimator
from graphcredit.store.layout import Store, open_store
from graphcredit.store.options import described
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.svg import draw
from graphcredit.viewer.graph.task_graph import read_task_graph
from tools.reference_pages import markdown_table

_WALKS = {
    "A": "hall east kitchen take done",
    "B": "hall west garden back hall east kitchen take done",
    "C": "hall east kitchen down cellar wait cellar",
    "D": "hall west garden down cellar wait cellar",
}
"""Rollouts of one task: a state, an action, the next state, … Those that end in `done` are won."""

_STORY = (
    "Four rollouts of one task. A and B took the mug and won; B looked into the garden first. "
    "C and D ended in the cellar. The colour of a transition is its mean advantage: blue is "
    "credit, orange blame."
)
_WITHOUT = {"sapo": "It needs the entities of a task, so this group has no number of it."}


def estimator_pages() -> dict[str, str]:
    """Return the path of each page, below reference/, and its Markdown."""
    names = [row.name for row in ESTIMATORS if row.name not in _WITHOUT]
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _record(Path(folder, "store"))
        graphcredit.credit(Path(folder, "store"), estimators=names)
        store = open_store(Path(folder, "store"))
        steps = graphcredit.scan(store).sort("trajectory_id", "step_index").collect()
        pictures = {name: _picture(store, name) for name in names}
    pages = {f"estimators/{row.name}.md": _page(row, steps, pictures) for row in ESTIMATORS}
    return pages | {"estimators/index.md": _overview(steps, pictures)}


def _record(store: Path) -> None:
    with graphcredit.StepRecorder(store, run_id="house", iteration=0, worker_id="w") as recorder:
        for name, walk in _WALKS.items():
            words, is_won = walk.split(), walk.endswith("done")
            with recorder.trajectory(task_id="mug", trajectory_id=name) as rollout:
                for i in range(0, len(words) - 2, 2):
                    reward = float(is_won and i == len(words) - 3)
                    state, action, following = words[i : i + 3]
                    rollout.log(state=state, action=action, next_state=following, reward=reward)
                rollout.end(success=is_won, truncated=not is_won)


def _picture(store: Store, name: str) -> str:
    column = f"{name}_advantage"
    graph = read_task_graph(store, run_id="house", iteration=0, task_id="mug", column=column)
    shading = Shading(advantage=f"{name} advantage")
    svg = draw(graph, title=f"The task mug, by {name}", shading=shading)
    # As wide as the page, whatever that is.
    scaled = re.sub(r'width="(\d+)" height="(\d+)"', r'viewBox="0 0 \1 \2"', svg, count=1)
    return f"<div>{scaled}</div>"


def _page(row: Estimator, steps: pl.DataFrame, pictures: dict[str, str]) -> str:
    idea, _, rest = inspect.cleandoc(row.options.__doc__ or "").partition("\n")
    parts = [f"# {row.name}", f"**{idea}**", f"Paper: {row.paper}. Made of: {row.matter}."]
    if row.name in pictures:
        parts += ["## On one small group", _STORY, pictures[row.name], _steps(steps, [row.name])]
    options = [(f"`{o.name}`", f"`{o.default}`", o.text) for o in described(row.options)]
    parts += [
        _WITHOUT.get(row.name, ""),
        _compared(row),
        "## Specification",
        rest.strip("\n"),
        "## Options",
        markdown_table(("`--set`", "default", "meaning"), options),
        f"Columns: {', '.join(f'`{name}`' for name in row.columns)}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _compared(row: Estimator) -> str:
    """Say what the advantage compares, in the words that the viewer uses."""
    if row.explains is None:
        return ""
    explanation = row.explains(row.options())
    lines = [
        f"- `{row.name}_{part}`: {each.what}"
        + ("" if each.among == "nobody" else f", compared among {each.among}")
        for part, compared in explanation.parts.items()
        for each in compared
    ]
    total = f"The advantage is {explanation.total}.\n\n" if explanation.total else ""
    return f"## What is compared\n\n{total}" + "\n".join(lines)


def _overview(steps: pl.DataFrame, pictures: dict[str, str]) -> str:
    ideas = "\n".join(
        f"- [`{row.name}`]({row.name}.md): {(row.options.__doc__ or '').partition(chr(10))[0]}"
        for row in ESTIMATORS
    )
    same = f"## The same group for all\n\n{_STORY} Here by `reach`:"
    numbers = _steps(steps, list(pictures))
    return "\n\n".join(["# Estimators", ideas, same, pictures["reach"], numbers]) + "\n"


def _steps(steps: pl.DataFrame, names: list[str]) -> str:
    """Return the advantages of every step, an estimator a column."""
    links = [f"[{name}]({name}.md)" for name in names]
    rows = [
        (
            step["trajectory_id"],
            f"{step['state']}: {step['action']}",
            *(f"{step[f'{name}_advantage']:+.2f}" for name in names),
        )
        for step in steps.iter_rows(named=True)
    ]
    return markdown_table(("rollout", "step", *links), rows)
