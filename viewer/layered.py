"""Where to draw the states of a graph: in layers, by their distance from the start."""

import igraph

from graphcredit.viewer.task_graph import TaskGraph


def layered_positions(graph: TaskGraph) -> dict[int, tuple[float, float]]:
    """Return {state_id: (layer, place in the layer)}; the layers are centred on 0.

    The layer is the number of steps from the first state. igraph orders each layer so that few
    edges cross; the places are even, because its own coordinates are crowded.
    """
    size = len(graph.nodes)
    position = {node.state_id: index for index, node in enumerate(graph.nodes)}
    pairs = [(position[edge.source], position[edge.target]) for edge in graph.edges]
    drawing = igraph.Graph(size, pairs, directed=True)
    (steps,) = drawing.distances(source=[0], mode="out")
    deepest = max((int(step) for step in steps if step < size), default=0)
    layers = [int(step) if step < size else deepest + 1 for step in steps]
    coordinates = drawing.layout_sugiyama(layers=layers).coords[:size]
    placed: dict[int, tuple[float, float]] = {}
    for layer in set(layers):
        members = [index for index in range(size) if layers[index] == layer]
        members.sort(key=lambda index: (coordinates[index][0], index))
        for place, index in enumerate(members):
            centre = (len(members) - 1) / 2
            placed[graph.nodes[index].state_id] = (float(layer), place - centre)
    return placed
