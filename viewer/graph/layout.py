"""The layout of a graph: states in layers, by their number of steps from the start."""

from collections.abc import Mapping

import igraph

from graphcredit.viewer.graph.task_graph import TaskGraph


def drawn(graph: TaskGraph) -> igraph.Graph:
    """Return an igraph graph whose vertices and edges are in the order of `nodes` and `edges`."""
    position = {node.state_id: index for index, node in enumerate(graph.nodes)}
    pairs = [(position[edge.source], position[edge.target]) for edge in graph.edges]
    return igraph.Graph(len(graph.nodes), pairs, directed=True)


def layers_of(graph: TaskGraph) -> dict[int, int]:
    """Return {state_id: number of steps from the first state}; the goal stands after all others.

    States that cannot be reached from the first one are put in one more layer at the end.
    """
    size = len(graph.nodes)
    (steps,) = drawn(graph).distances(source=[0], mode="out")
    deepest = max((int(step) for step in steps if step < size), default=0)
    layers = {
        node.state_id: int(step) if step < size else deepest + 1
        for node, step in zip(graph.nodes, steps, strict=True)
    }
    goal = graph.goal
    if goal is None or len(layers) == 1:
        return layers
    last = max(layer for state, layer in layers.items() if state != goal)
    return layers | {goal: last + 1}


def layered_positions(
    graph: TaskGraph, layers: Mapping[int, int] | None = None
) -> dict[int, tuple[float, float]]:
    """Return {state_id: (layer, place in the layer)}; the layers are centred on 0.

    igraph orders each layer so that few edges cross. The places are evenly spaced, because igraph's
    own coordinates are crowded.

    Args:
        graph: The graph to draw.
        layers: From `layers_of` the whole graph, if this is a part of it; layers without a drawn
            state take no room.
    """
    of_state = layers_of(graph) if layers is None else layers
    used = sorted({of_state[node.state_id] for node in graph.nodes})
    column = [used.index(of_state[node.state_id]) for node in graph.nodes]
    size = len(graph.nodes)
    coordinates = drawn(graph).layout_sugiyama(layers=column).coords[:size]
    placed: dict[int, tuple[float, float]] = {}
    for layer in range(len(used)):
        members = [index for index in range(size) if column[index] == layer]
        members.sort(key=lambda index: (coordinates[index][0], index))
        for place, index in enumerate(members):
            centre = (len(members) - 1) / 2
            placed[graph.nodes[index].state_id] = (float(layer), place - centre)
    return placed
