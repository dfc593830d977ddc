"""Export a graph as one HTML file that works without a server and a network."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import pyarrow as pa

from graphcredit.store.log_text import in_html, isolated, named, one_line, visible
from graphcredit.store.plural import counted
from graphcredit.viewer.graph.assets import asset, page_script, page_style
from graphcredit.viewer.graph.drawing import Drawing
from graphcredit.viewer.graph.facts import choices, edge_steps
from graphcredit.viewer.graph.shading import signed
from graphcredit.viewer.graph.task_graph import TaskGraph, edge_key, node_key
from graphcredit.viewer.queries.outcomes import succeeded

_MOST_STEPS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """The site that a page is a part of."""

    scripts: tuple[str, ...]
    """Addresses of the files that its pages share: of `cytoscape.min.js`, then of `page_script`."""
    style: str
    """Address of the file with `page_style`, and with that of what stands around the graph."""
    above: str
    """HTML before the heading."""
    below: str
    """HTML after the graph."""


def graph_html(
    drawing: Drawing,
    graph: TaskGraph,
    steps: pa.Table,
    *,
    path: Sequence[str],
    column: str,
    title: str,
    most_steps: int = _MOST_STEPS,
    site: Site | None = None,
) -> str:
    """Return the page.

    Args:
        drawing: The drawing.
        graph: The part of the task's graph in the drawing.
        steps: From `queries.graphs.task_steps`.
        path: Keys of the states and transitions of an overlaid trajectory.
        column: The advantage that colours the edges, by which actions are ranked.
        title: The heading.
        most_steps: Most steps of a transition to list.
        site: Where the page belongs; by default it is a file of its own.
    """
    data = drawing.as_json() | {
        "signature": "",
        "path": list(path),
        "details": dict(_details(graph, drawing.names, steps, column, most_steps)),
    }
    parts = {
        "KIND": "alone" if site is None else "site",
        **(_inside() if site is None else _beside(site)),
        "GRAPH": asset("graph.html"),
        "TITLE": in_html(named(title)),
        "ABOVE": "" if site is None else site.above,
        "BELOW": "" if site is None else site.below,
        "DATA": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
    return re.sub(r"\[\[([A-Z]+)\]\]", lambda gap: parts[gap[1]], asset("page.html"))


def _inside() -> dict[str, str]:
    """Return the parts of a page that has its scripts and its style in itself."""
    scripts = (asset("cytoscape.min.js"), page_script())
    return {
        "POLICY": "script-src 'unsafe-inline'; style-src 'unsafe-inline'",
        "STYLE": f"<style>{page_style()}</style>",
        "SCRIPT": "\n".join(f"<script>{script}</script>" for script in scripts),
    }


def _beside(site: Site) -> dict[str, str]:
    """Return the parts of a page that loads them from its site; the graph itself makes styles."""
    return {
        "POLICY": "script-src 'self' file:; style-src 'self' file: 'unsafe-inline'",
        "STYLE": f'<link rel="stylesheet" href="{escape(site.style)}">',
        "SCRIPT": "\n".join(f'<script src="{escape(each)}"></script>' for each in site.scripts),
    }


def _details(
    graph: TaskGraph, names: Mapping[int, str], steps: pa.Table, column: str, most_steps: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield, for each state and transition, its key, its title and its texts."""
    for node in graph.nodes:
        actions = (
            f"{signed(choice.advantage)}  {isolated(visible(choice.action))} → "
            f"{names[choice.target]}  ({counted(choice.num_trajectories, 'rollout')} in "
            f"{counted(choice.visits, 'step')}{succeeded(choice.num_succeeded)})"
            for choice in choices(steps, node.state_id, column)
        )
        text = "\n".join([f"Actions by {column}:", *actions])
        yield node_key(node.state_id), [names[node.state_id], visible(node.state), text]
    for edge in graph.edges:
        title = f"{names[edge.source]} → {names[edge.target]}"
        if edge.between:
            states = ", ".join(map(str, edge.between))
            yield (
                edge_key(edge.ends),
                [title, f"{one_line(edge.actions[0])}, through the states {states}"],
            )
            continue
        taken = edge_steps(steps, edge.ends)
        lines = (
            "\n".join(f"{name}: {_shown(value)}" for name, value in row.items())
            for row in taken.slice(0, most_steps).to_pylist()
        )
        left_out = max(len(taken) - most_steps, 0)
        more = [f"and {left_out} more"] if left_out else []
        yield (
            edge_key(edge.ends),
            [title, "\n\n".join([counted(len(taken), "step"), *lines, *more])],
        )


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))
