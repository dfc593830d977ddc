"""The transitions of a graph to look at first: by credit, by outcome, by what estimators say."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections import Counter
from collections.abc import Container
from itertools import zip_longest

import pyarrow as pa

from graphcredit.store.schema import split_estimator_column
from graphcredit.viewer.graph.facts import telling_ends
from graphcredit.viewer.graph.task_graph import Edge, Ends, TaskGraph
from graphcredit.viewer.queries.outcomes import well_ended

_OF_EACH = 6
"""Most transitions for each reason to look at one."""

_PAIR = ["state_id", "next_state_id"]


def important(graph: TaskGraph, steps: pa.Table) -> list[Edge]:
    """Return the transitions that matter, by turns for each reason, the most important first.

    The reasons: that rollouts left the way of those that ended well, much blame, much credit, and
    that estimators disagree.
    """
    marked = remarkable(graph, telling_ends(steps), most=2 * _OF_EACH)
    of_ends = {edge.ends: edge for edge in graph.edges}
    blamed = [edge.ends for edge in marked if _value(edge) < 0]
    reasons = [
        [*forks(steps)][:_OF_EACH],
        blamed,
        [edge.ends for edge in marked if edge.ends not in blamed],
        disputed(steps)[:_OF_EACH],
    ]
    turns = (ends for turn in zip_longest(*reasons) for ends in turn if ends in of_ends)
    return [of_ends[ends] for ends in dict.fromkeys(turns)]


def remarkable(graph: TaskGraph, telling: Container[Ends], *, most: int) -> list[Edge]:
    """Return the most credited transitions and the most blamed ones, half of each.

    Those that are not `telling` come last: there is nothing to compare them with.
    """
    valued = sorted(graph.edges, key=lambda edge: (edge.ends not in telling, -abs(_value(edge))))
    credited = [edge for edge in valued if _value(edge) > 0][: most // 2]
    blamed = [edge for edge in valued if _value(edge) < 0][: most - most // 2]
    return [*credited, *blamed]


def forks(steps: pa.Table) -> dict[Ends, int]:
    """Return the transitions with which rollouts left the way of those that ended well for good.

    The most frequent come first, each with the number of rollouts. Of each rollout it is the last
    step from a state in which one was that ended well; only steps count that may head a list, see
    `queries.telling`.
    """
    well = well_ended(steps)
    rows = steps.select([*_PAIR, "trajectory_id", "is_telling"]).to_pylist()
    way = {row["state_id"] for row in rows if row["trajectory_id"] in well}
    left: dict[str, Ends] = {}
    for row in rows:
        name, ends = row["trajectory_id"], (row["state_id"], row["next_state_id"])
        if name not in well and row["is_telling"] and row["state_id"] in way:
            left[name] = ends
    return dict(sorted(Counter(left.values()).items(), key=lambda each: (-each[1], each[0])))


def disputed(steps: pa.Table) -> list[Ends]:
    """Return the transitions that one estimator credits and another one blames.

    The most disputed come first: by the smaller one of the greatest credit and the greatest blame,
    each as a share of its estimator's greatest mean.
    """
    columns = [name for name in steps.column_names if _is_advantage(name)]
    if len(columns) < 2:
        return []
    means = steps.group_by(_PAIR).aggregate([(name, "mean") for name in columns])
    shares: list[list[float]] = []
    for name in columns:
        values = [value or 0.0 for value in means[f"{name}_mean"].to_pylist()]
        greatest = max(map(abs, values), default=0.0) or 1.0
        shares.append([value / greatest for value in values])
    ends = zip(*(means[name].to_pylist() for name in _PAIR), strict=True)
    weights = {pair: min(max(said), -min(said)) for pair, *said in zip(ends, *shares, strict=True)}
    return sorted((pair for pair in weights if weights[pair] > 0), key=lambda e: (-weights[e], e))


def _is_advantage(name: str) -> bool:
    parts = split_estimator_column(name)
    return parts is not None and parts[1] == "advantage"


def _value(edge: Edge) -> float:
    return edge.advantage or 0.0
