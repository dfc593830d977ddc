"""Convert a part of a task's graph to Cytoscape's form: positions, colours, sizes and labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.appearance import Appearance, Scales
from graphcredit.viewer.graph.bends import Point
from graphcredit.viewer.graph.folds import Fold, folded, outside, ways_inside
from graphcredit.viewer.graph.frames import Frames
from graphcredit.viewer.graph.geometry import Sizes, labels_of, places_of, places_within, routed
from graphcredit.viewer.graph.keys import fold_key, node_key
from graphcredit.viewer.graph.names import distinctions
from graphcredit.viewer.graph.routes import Route
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import Node, TaskGraph
from graphcredit.viewer.graph.visible_part import READABLE
from graphcredit.viewer.graph.words import fold_label, fold_notes, fold_tip, legend_notes

Element = Mapping[str, Any]

_FOLD = (144, 58)
"""Width and height of a closed fold, in pixels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """The drawing without the selection, so that a selection does not change it."""

    nodes: Sequence[Element]
    """States, and closed folds."""
    edges: Sequence[Element]
    """Transitions; those into or out of a closed fold have it as their target or source, and their
    own ends as `to` and `from`."""
    legend: Mapping[str, Any]
    folds: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Key of a closed fold to what stands in its place, `at`, when it is open: `nodes` and `edges`,
    and the `width` that it takes more."""
    frames: Sequence[Mapping[str, Any]] = ()
    """What each iteration changes, if it is a drawing over iterations."""

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {
            "nodes": self.nodes,
            "edges": self.edges,
            "legend": self.legend,
            "folds": self.folds,
            "frames": self.frames,
        }


def draw_part(
    graph: TaskGraph,
    layers: Mapping[int, int],
    shading: Shading,
    folds: Sequence[Fold] = (),
    frames: Frames | None = None,
) -> Drawing:
    """Return the drawing of a graph.

    Args:
        graph: The part of the task's graph that is shown.
        layers: From `layers_of` the whole graph.
        shading: The meaning of the colours.
        folds: What is folded; from `folds_of` the part.
        frames: The iterations that change it; then the graph has the states of all.
    """
    outer = folded(graph, folds)
    are_boxes = len(outer.nodes) <= READABLE
    graphs = [graph] if frames is None else list(frames.graphs.values())
    visits = [node.visits for each in graphs for node in each.nodes]
    sizes = Sizes(are_boxes=are_boxes, most_visits=max(visits, default=1))
    looks = Appearance(
        shading=shading,
        scales=Scales.of(graphs, shading),
        start=min(layers, key=layers.__getitem__),
        apart=distinctions(graph.nodes) if are_boxes else None,
    )
    places, column = places_of(outer, layers, are_boxes=are_boxes)
    labels = labels_of(outer, shading)
    fold_at = {fold.first: fold for fold in folds}
    size = {
        node.state_id: _FOLD if node.state_id in fold_at else sizes.of(node) for node in outer.nodes
    }
    paths = routed(outer, labels, shading, places, size)
    key_of = {
        node_key(node.state_id): fold_key(fold.first) for fold in folds for node in fold.nodes
    }
    return Drawing(
        nodes=[
            _closed(fold_at[node.state_id], shading, places[node.state_id])
            if node.state_id in fold_at
            else _state(node, looks, sizes, places[node.state_id])
            for node in outer.nodes
        ],
        edges=[
            _edge(looks.transition(edge) | {"label": label}, route, key_of)
            for edge, (label, route) in zip(outside(graph, folds), paths, strict=True)
        ],
        legend=looks.legend(
            [
                *(["in boxes: seen distance, visits"] if are_boxes else []),
                *legend_notes(shading),
                *fold_notes({fold.kind for fold in folds}),
                *(["faint: not in this iteration"] if frames else []),
                *_without_room(label for label, _ in paths),
            ]
        ),
        folds={
            fold_key(fold.first): _open(graph, fold, looks, sizes, places[fold.first], column)
            for fold in folds
        },
        frames=[] if frames is None else frames.as_json(looks, sizes, folds),
    )


def _state(node: Node, looks: Appearance, sizes: Sizes, place: Point) -> Element:
    width, height = sizes.of(node)
    data = looks.state(node) | {"width": width, "height": height}
    return {"data": data, "position": dict(zip("xy", place, strict=True))}


def _edge(data: dict[str, Any], route: Route, key_of: Mapping[str, str]) -> Element:
    source, target = data["source"], data["target"]
    shift = {
        "bend": route.bend,
        "dx": round(route.shift[0]) if route.shift else 0,
        "dy": round(route.shift[1]) if route.shift else 0,
    }
    if not {source, target} & key_of.keys():
        return {"data": data | shift}
    own = {"from": source, "to": target}
    ends = {"source": key_of.get(source, source), "target": key_of.get(target, target)}
    return {"data": data | own | ends | shift}


def _closed(fold: Fold, shading: Shading, place: Point) -> Element:
    values = [shading.drawn_value(edge) for edge in fold.edges]
    data = {
        "id": fold_key(fold.first),
        "label": fold_label(fold.kind, fold.nodes, values),
        "tip": fold_tip(fold.kind, fold.nodes, values),
        "width": _FOLD[0],
        "height": _FOLD[1],
        "kind": fold.kind,
        "box": True,
    }
    return {"data": data, "position": dict(zip("xy", place, strict=True))}


def _open(
    graph: TaskGraph, fold: Fold, looks: Appearance, sizes: Sizes, place: Point, column: float
) -> dict[str, Any]:
    """Return what stands in the place of an open fold; each number of steps takes a column."""
    edges = (*fold.edges, *ways_inside(graph, fold))
    labels = labels_of(TaskGraph(nodes=(), edges=edges), looks.shading)
    places = places_within(fold.steps, place, column, sizes)
    return {
        "kind": fold.kind,
        "at": dict(zip("xy", place, strict=True)),
        "nodes": [
            _state(node, looks, sizes, at) for node, at in zip(fold.nodes, places, strict=True)
        ],
        "edges": [
            _edge(looks.transition(edge) | {"label": label}, Route(), {})
            for edge, label in zip(edges, labels, strict=True)
        ],
        "width": max(fold.steps) * column,
    }


def _without_room(labels: Iterable[str]) -> list[str]:
    """Return a note for the legend on transitions whose action had no room."""
    number = sum(not label for label in labels)
    return [f"{counted(number, 'action')} without room: point at the edge"] if number else []
