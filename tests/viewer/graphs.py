"""Graphs that are drawn by hand."""

from itertools import pairwise

from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph


def graph_of(
    *paths: str, goal: int | None = None, costs: dict[str, float] | None = None
) -> TaskGraph:
    """Return a graph of paths such as "0 1 2"; each transition is visited once per path."""
    ways = [tuple(map(int, pair)) for path in paths for pair in pairwise(path.split())]
    states = {int(state) for path in paths for state in path.split()}
    nodes = [
        Node(
            state_id=state,
            state=f"s{state}",
            is_goal=state == goal,
            visits=sum(state in way for way in ways),
            num_trajectories=1,
            success_rate=0.0,
            goal_distance=None,
            rewardflow_value=None,
            reach_expected=None,
            reach_doubt=None,
            num_merged=1,
        )
        for state in sorted(states)
    ]
    edges = [
        Edge(
            source=source,
            target=target,
            actions=("a",),
            visits=ways.count((source, target)),
            cost=(costs or {}).get(f"{source} {target}", 1.0),
            advantage=None,
            is_pruned=False,
        )
        for source, target in sorted(set(ways))
    ]
    return TaskGraph(nodes=tuple(nodes), edges=tuple(edges))
