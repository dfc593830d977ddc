"""A page for each estimator of the site, with what it gives every step of one small group."""

import inspect
import warnings
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from html import escape

import polars as pl

import graphcredit
from graphcredit.credit.estimators.table import ESTIMATORS, Estimator
from graphcredit.store.options import described

_WALKS = {
    "A": "hall east kitchen take done",
    "B": "hall west garden back hall east kitchen take done",
    "C": "hall east kitchen down cellar wait cellar",
    "D": "hall west garden down cellar wait cellar",
}
"""Rollouts of one task: a state, an action, the next state, … Those that end in `done` are won."""

_PLACES = {
    "hall": (70, 110),
    "kitchen": (300, 40),
    "garden": (300, 180),
    "done": (520, 40),
    "cellar": (520, 180),
}
_PATHS = {
    ("hall", "kitchen"): ("M112 100L258 52", 160, 66),
    ("hall", "garden"): ("M100 126Q150 186 258 186", 140, 186),
    ("garden", "hall"): ("M258 172L112 118", 216, 140),
    ("kitchen", "done"): ("M342 40L478 40", 410, 32),
    ("kitchen", "cellar"): ("M330 56L490 164", 450, 106),
    ("garden", "cellar"): ("M342 186L478 186", 410, 206),
    ("cellar", "cellar"): ("M540 164q30 -40 22 12", 594, 144),
}
"""Each transition's line, and where its text stands."""

_CREDIT, _BLAME, _NEITHER = "#2166ac", "#b35806", "#666666"
_WITHOUT = {"sapo": "It needs the entities of a task, so this group has no number of it."}


def estimator_pages() -> dict[str, str]:
    """Return the path of each page, below reference/, and its Markdown."""
    steps = _steps()
    credit = {row.name: _credit(steps, row.name) for row in ESTIMATORS if row.name not in _WITHOUT}
    pages = {f"estimators/{row.name}.md": _page(row, steps, credit) for row in ESTIMATORS}
    return pages | {"estimators/index.md": _overview(steps, credit)}


def _steps() -> pl.DataFrame:
    start, rows = datetime(2026, 1, 1, tzinfo=UTC), []
    for name, walk in _WALKS.items():
        words = walk.split()
        for i in range(0, len(words) - 2, 2):
            is_won = words[-1] == "done"
            rows.append(
                {"task_id": "mug", "trajectory_id": name, "state": words[i], "action": words[i + 1]}
                | {"next_state": words[i + 2], "success": is_won, "step_index": i // 2}
                | {"reward": float(is_won and i == len(words) - 3)}
                | {"logged_at": start + timedelta(seconds=len(rows))}
            )
    return pl.DataFrame(rows)


def _credit(steps: pl.DataFrame, estimator: str) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return graphcredit.compute(steps, estimators=estimator)[f"{estimator}_advantage"].to_list()


def _page(row: Estimator, steps: pl.DataFrame, credit: dict[str, list[float]]) -> str:
    idea, _, rest = inspect.cleandoc(row.options.__doc__ or "").partition("\n")
    parts = [f"# {row.name}", f"**{idea}**", f"Paper: {row.paper}. Made of: {row.matter}."]
    if row.name in credit:
        parts += ["## On one small group", _STORY, _picture(steps, credit[row.name], row.name)]
    parts += [
        _WITHOUT.get(row.name, ""),
        _compared(row),
        "## Specification",
        rest.strip("\n"),
        "## Options",
    ]
    options = [f"| `{o.name}` | `{o.default}` | {o.text} |" for o in described(row.options)]
    parts.append("\n".join(["| `--set` | default | meaning |", "| --- | --- | --- |", *options]))
    parts.append(f"Columns: {', '.join(f'`{name}`' for name in row.columns)}.")
    return "\n\n".join(part for part in parts if part) + "\n"


_STORY = (
    "Four rollouts of one task. A and B took the mug and won; B looked into the garden first. "
    "C and D ended in the cellar. Beside each transition stands its mean advantage: blue is "
    "credit, orange blame."
)


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


def _overview(steps: pl.DataFrame, credit: dict[str, list[float]]) -> str:
    names = list(credit)
    head = ["rollout", "step", *(f"[{name}]({name}.md)" for name in names)]
    lines = [head, ["---"] * len(head)]
    for i, step in enumerate(steps.iter_rows(named=True)):
        numbers = [f"{credit[name][i]:+.2f}" for name in names]
        lines.append([step["trajectory_id"], f"{step['state']}: {step['action']}", *numbers])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    ideas = "\n".join(
        f"- [`{row.name}`]({row.name}.md): {(row.options.__doc__ or '').partition(chr(10))[0]}"
        for row in ESTIMATORS
    )
    picture = _picture(steps, credit["reach"], "reach")
    same = f"## The same group for all\n\n{_STORY} Here by `reach`:"
    return "\n\n".join(["# Estimators", ideas, same, picture, table]) + "\n"


def _picture(steps: pl.DataFrame, credit: list[float], name: str) -> str:
    """Draw the group's graph as SVG, transitions coloured by their mean credit."""
    edges: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for step, value in zip(steps.iter_rows(named=True), credit, strict=True):
        edges[step["state"], step["action"], step["next_state"]].append(value)
    shapes = [_edge(*edge, sum(values) / len(values)) for edge, values in edges.items()]
    for state, (x, y) in _PLACES.items():
        shapes.append(
            f'<rect x="{x - 42}" y="{y - 16}" width="84" height="32" fill="#fff" stroke="#888"/>'
            f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="#222">{state}</text>'
        )
    label = escape(f"The small group's graph with the mean advantage of {name} on each transition")
    heads = "".join(
        f'<marker id="{colour[1:]}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="4" '
        f'markerHeight="4" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{colour}"/></marker>'
        for colour in (_CREDIT, _BLAME, _NEITHER)
    )
    return (
        f'<svg viewBox="0 0 640 240" role="img" aria-label="{label}" font-size="14" '
        f'font-family="sans-serif" style="max-width:40rem;background:#fff"><defs>{heads}</defs>'
        f"{''.join(shapes)}</svg>"
    )


def _edge(state: str, action: str, next_state: str, value: float) -> str:
    path, x, y = _PATHS[state, next_state]
    colour = _NEITHER if abs(value) < 0.005 else _CREDIT if value > 0 else _BLAME
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="3" '
        f'marker-end="url(#{colour[1:]})"/>'
        f'<text x="{x}" y="{y}" text-anchor="middle" fill="{colour}">{action} {value:+.2f}</text>'
    )
