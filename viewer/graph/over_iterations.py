"""One task's graphs of several iterations as one graph, in which a state keeps its number."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph


@dataclass(frozen=True, kw_only=True, slots=True)
class OverIterations:
    """The graphs of a task. States of different iterations are one if their texts are equal."""

    base: int
    """The iteration whose numbers of states are kept; others have further numbers."""
    graphs: Mapping[int, TaskGraph]
    """Iteration to its graph, with these numbers."""
    whole: TaskGraph
    """Every state, as the base has it or else the last iteration that has it; and every transition,
    as the iteration with its greatest advantage has it, credit or blame."""

    def seen_in(self, state_id: int) -> list[int]:
        """Return the iterations that have a state."""
        return [
            iteration
            for iteration, graph in self.graphs.items()
            if any(node.state_id == state_id for node in graph.nodes)
        ]


def over_iterations(graphs: Mapping[int, TaskGraph], base: int) -> OverIterations:
    """Return graphs of one task as one.

    Args:
        graphs: Iteration to its graph, in order.
        base: One of these iterations.
    """
    number = {_sameness(node): node.state_id for node in graphs[base].nodes}
    following = max(number.values(), default=-1) + 1
    for graph in graphs.values():
        for node in graph.nodes:
            if _sameness(node) not in number:
                number[_sameness(node)] = following
                following += 1
    renamed = {iteration: _renamed(graph, number) for iteration, graph in graphs.items()}
    nodes: dict[int, Node] = {}
    edges: dict[tuple[int, int], Edge] = {}
    for graph in [*renamed.values(), renamed[base]]:
        nodes |= {node.state_id: node for node in graph.nodes}
        for edge in graph.edges:
            edges[edge.ends] = max(edges.get(edge.ends, edge), edge, key=_loudness)
    whole = TaskGraph(
        nodes=tuple(nodes[state] for state in sorted(nodes)),
        edges=tuple(edges[ends] for ends in sorted(edges)),
    )
    return OverIterations(base=base, graphs=renamed, whole=whole)


def _renamed(graph: TaskGraph, number: Mapping[tuple[bool, str], int]) -> TaskGraph:
    """Return a graph with other numbers of states."""
    of = {node.state_id: number[_sameness(node)] for node in graph.nodes}
    nodes = [replace(node, state_id=of[node.state_id]) for node in graph.nodes]
    edges = [replace(e, source=of[e.source], target=of[e.target]) for e in graph.edges]
    return TaskGraph(
        nodes=tuple(sorted(nodes, key=lambda node: node.state_id)),
        edges=tuple(sorted(edges, key=lambda edge: edge.ends)),
    )


def _sameness(node: Node) -> tuple[bool, str]:
    """Return what states of different iterations are matched by; the text of goals varies."""
    return (True, "") if node.is_goal else (False, node.state)


def _loudness(edge: Edge) -> float:
    return abs(edge.advantage or 0.0)
