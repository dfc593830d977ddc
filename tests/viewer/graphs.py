"""Graphs that are drawn by hand."""

from collections.abc import Mapping
from itertools import pairwise

from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph


def graph_of(
    *paths: str,
    goal: int | None = None,
    costs: dict[str, float] | None = None,
    texts: Mapping[int, str] | None = None,
    actions: Mapping[str, str] | None = None,
) -> TaskGraph:
    """Return a graph of paths such as "0 1 2"; each transition is visited once per path.

    Args:
        paths: The paths.
        goal: The state that is the goal.
        costs: Of transitions such as "0 1", where they are not 1.
        texts: Of states, where they are not "s0" or the like.
        actions: Of transitions, where they are not "a".
    """
    ways = [tuple(map(int, pair)) for path in paths for pair in pairwise(path.split())]
    states = {int(state) for path in paths for state in path.split()}
    nodes = [
        Node(
            state_id=state,
            state=(texts or {}).get(state, f"s{state}"),
            is_goal=state == goal,
            visits=sum(state in way for way in ways),
            num_trajectories=1,
            success_rate=0.0,
            goal_distance=None,
            rewardflow_value=None,
            reach_expected=None,
            num_merged=1,
        )
        for state in sorted(states)
    ]
    edges = [
        Edge(
            source=source,
            target=target,
            actions=((actions or {}).get(f"{source} {target}", "a"),),
            visits=ways.count((source, target)),
            cost=(costs or {}).get(f"{source} {target}", 1.0),
            advantage=None,
            is_pruned=False,
        )
        for source, target in sorted(set(ways))
    ]
    return TaskGraph(nodes=tuple(nodes), edges=tuple(edges))
