"""A drawing over iterations: what each of them changes in the looks of states and transitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.appearance import Appearance
from graphcredit.viewer.graph.folds import Fold
from graphcredit.viewer.graph.geometry import Sizes
from graphcredit.viewer.graph.keys import fold_key
from graphcredit.viewer.graph.task_graph import Node, TaskGraph
from graphcredit.viewer.graph.words import fold_label, fold_tip

_OPTIONAL = ("colour", "ink", "pruned", "blamed", "flipped", "conflict")
"""Data that an element may lack."""
_LASTING = ("id", "source", "target")


@dataclass(frozen=True, kw_only=True, slots=True)
class Frames:
    """The iterations of a drawing, and the one that it shows first."""

    graphs: Mapping[int, TaskGraph]
    """Iteration to the part of its graph that is drawn; states have the same numbers in all."""
    first: int

    def words(self, iteration: int) -> str:
        """Return the name of an iteration, how often it succeeded, and its size."""
        graph = self.graphs[iteration]
        start = graph.nodes[0] if graph.nodes else None
        ended = (
            ""
            if start is None
            else f" · {start.success_rate:.0%} of {counted(start.num_trajectories, 'trajectory')}"
            " succeeded"
        )
        return f"iteration {iteration}{ended} · {counted(len(graph.nodes), 'state')} drawn"

    def as_json(
        self, looks: Appearance, sizes: Sizes, folds: Sequence[Fold]
    ) -> list[dict[str, Any]]:
        """Return, for each iteration, its words and the data of the elements that it has."""
        return [
            {
                "words": self.words(iteration),
                "first": iteration == self.first,
                "data": _data(graph, looks, sizes, folds),
            }
            for iteration, graph in self.graphs.items()
        ]


def _data(
    graph: TaskGraph, looks: Appearance, sizes: Sizes, folds: Sequence[Fold]
) -> dict[str, dict[str, Any]]:
    there = {node.state_id: node for node in graph.nodes}
    found: dict[str, dict[str, Any]] = {}
    for node in graph.nodes:
        width, height = sizes.of(node)
        state = looks.state(node)
        found[state["id"]] = _changes(state | {"width": width, "height": height})
    for edge in graph.edges:
        transition = looks.transition(edge)
        found[transition["id"]] = _changes(transition)
    values = {edge.ends: looks.shading.drawn_value(edge) for edge in graph.edges}
    for fold in folds:
        nodes = [there[node.state_id] for node in fold.nodes if node.state_id in there]
        if nodes:
            known = [values[edge.ends] for edge in fold.edges if edge.ends in values]
            tip = fold_tip(fold.kind, nodes, known)
            found[fold_key(fold.first)] = {"label": _fold_label(nodes, fold, known), "tip": tip}
    return found


def _fold_label(nodes: Sequence[Node], fold: Fold, values: Sequence[float | None]) -> str:
    if len(nodes) == len(fold.nodes):
        return fold_label(fold.kind, nodes, values)
    return f"{len(nodes)} of {len(fold.nodes)} states\nof this {fold.kind}"


def _changes(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may differ from iteration to iteration; None for what is not there."""
    lacking = dict.fromkeys(name for name in _OPTIONAL if name not in data)
    return {name: value for name, value in data.items() if name not in _LASTING} | lacking
