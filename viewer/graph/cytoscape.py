"""Convert a part of a task's graph to Cytoscape's form: positions, colours, sizes and labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphcredit.store.plural import counted
from graphcredit.viewer.graph.appearance import Appearance, Scales
from graphcredit.viewer.graph.bends import Point
from graphcredit.viewer.graph.chains import StateChain, folded, outside
from graphcredit.viewer.graph.frames import Frames
from graphcredit.viewer.graph.geometry import Sizes, labels_of, places_of, routed
from graphcredit.viewer.graph.keys import chain_key, node_key
from graphcredit.viewer.graph.names import distinctions
from graphcredit.viewer.graph.routes import Route
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import Node, TaskGraph
from graphcredit.viewer.graph.visible_part import READABLE
from graphcredit.viewer.graph.words import chain_label, chain_tip, legend_notes

Element = Mapping[str, Any]

_CHAIN = (144, 58)
"""Width and height of a folded chain, in pixels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """The drawing without the selection, so that a selection does not change it."""

    nodes: Sequence[Element]
    """States, and folded chains."""
    edges: Sequence[Element]
    """Transitions; those of a folded chain's ends have the chain as their source or target."""
    legend: Mapping[str, Any]
    chains: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Key of a folded chain to what stands in its place when it is open: `nodes` and `edges`, and
    the `width` that it takes more."""
    frames: Sequence[Mapping[str, Any]] = ()
    """What each iteration changes, if it is a drawing over iterations."""

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {
            "nodes": self.nodes,
            "edges": self.edges,
            "legend": self.legend,
            "chains": self.chains,
            "frames": self.frames,
        }


def draw_part(
    graph: TaskGraph,
    layers: Mapping[int, int],
    shading: Shading,
    chains: Sequence[StateChain] = (),
    frames: Frames | None = None,
) -> Drawing:
    """Return the drawing of a graph.

    Args:
        graph: The part of the task's graph that is shown.
        layers: From `layers_of` the whole graph.
        shading: The meaning of the colours.
        chains: What is folded; from `chains_of` the part.
        frames: The iterations that change it; then the graph has the states of all.
    """
    outer = folded(graph, chains)
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
    folds = {chain.first: chain for chain in chains}
    size = {
        node.state_id: _CHAIN if node.state_id in folds else sizes.of(node) for node in outer.nodes
    }
    paths = routed(outer, labels, shading, places, size)
    key_of = {
        node_key(node.state_id): chain_key(chain.first) for chain in chains for node in chain.nodes
    }
    return Drawing(
        nodes=[
            _chain(folds[node.state_id], shading, places[node.state_id])
            if node.state_id in folds
            else _state(node, looks, sizes, places[node.state_id])
            for node in outer.nodes
        ],
        edges=[
            _edge(looks.transition(edge) | {"label": label}, route, key_of)
            for edge, (label, route) in zip(outside(graph, chains), paths, strict=True)
        ],
        legend=looks.legend(
            [
                *(["in boxes: seen distance, visits"] if are_boxes else []),
                *legend_notes(shading),
                *(
                    ["stacked: a chain of states, and the range of its advantages"]
                    if chains
                    else []
                ),
                *(["faint: not in this iteration"] if frames else []),
                *_without_room(label for label, _ in paths),
            ]
        ),
        chains={
            chain_key(chain.first): _open(chain, looks, sizes, places[chain.first], column)
            for chain in chains
        },
        frames=[] if frames is None else frames.as_json(looks, sizes, chains),
    )


def _state(node: Node, looks: Appearance, sizes: Sizes, place: Point) -> Element:
    width, height = sizes.of(node)
    data = looks.state(node) | {"width": width, "height": height}
    return {"data": data, "position": dict(zip("xy", place, strict=True))}


def _edge(data: dict[str, Any], route: Route, key_of: Mapping[str, str]) -> Element:
    source, target = data["source"], data["target"]
    ends = {"source": key_of.get(source, source), "target": key_of.get(target, target)}
    shift = {
        "bend": route.bend,
        "dx": round(route.shift[0]) if route.shift else 0,
        "dy": round(route.shift[1]) if route.shift else 0,
    }
    return {"data": data | ends | shift}


def _chain(chain: StateChain, shading: Shading, place: Point) -> Element:
    values = [shading.drawn_value(edge) for edge in chain.edges]
    data = {
        "id": chain_key(chain.first),
        "label": chain_label(chain.nodes, values),
        "tip": chain_tip(chain.nodes, values),
        "width": _CHAIN[0],
        "height": _CHAIN[1],
        "kind": "chain",
        "box": True,
    }
    return {"data": data, "position": dict(zip("xy", place, strict=True))}


def _open(
    chain: StateChain, looks: Appearance, sizes: Sizes, place: Point, column: float
) -> dict[str, Any]:
    """Return what stands in the place of an open chain; its states take a column each."""
    x, y = place
    return {
        "nodes": [
            _state(node, looks, sizes, (x + number * column, y))
            for number, node in enumerate(chain.nodes)
        ],
        "edges": [
            _edge(looks.transition(edge) | {"label": label}, Route(), {})
            for edge, label in zip(
                chain.edges,
                labels_of(TaskGraph(nodes=(), edges=chain.edges), looks.shading),
                strict=True,
            )
        ],
        "width": (len(chain.nodes) - 1) * column,
    }


def _without_room(labels: Iterable[str]) -> list[str]:
    """Return a note for the legend on transitions whose action had no room."""
    number = sum(not label for label in labels)
    return [f"{counted(number, 'action')} without room: point at the edge"] if number else []
