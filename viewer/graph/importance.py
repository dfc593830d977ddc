"""The transitions of a graph to look at first: by credit, by outcome, by what estimators say."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from itertools import zip_longest
from typing import Any

import pyarrow as pa

from graphcredit.store.schema import split_estimator_column
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import Edge, Ends, TaskGraph

_OF_EACH = 6
"""Most transitions for each reason to look at one."""

_PAIR = ["state_id", "next_state_id"]


def important(graph: TaskGraph, shading: Shading, steps: pa.Table) -> list[Edge]:
    """Return the transitions that matter, by turns for each reason, the most important first.

    The reasons: much credit, much blame, that won rollouts part there from failed ones, and that
    estimators disagree. In a comparison, only where the two sides differ most.
    """
    if shading.others is not None:
        return remarkable(graph, shading, most=2 * _OF_EACH)
    of_ends = {edge.ends: edge for edge in graph.edges}
    marked = remarkable(graph, shading, most=2 * _OF_EACH)
    blamed = [edge for edge in marked if (shading.value(edge) or 0.0) < 0][::-1]
    reasons = [
        [edge.ends for edge in marked if edge not in blamed],
        [edge.ends for edge in blamed],
        partings(steps)[:_OF_EACH],
        disputed(steps)[:_OF_EACH],
    ]
    turns = (ends for turn in zip_longest(*reasons) for ends in turn if ends in of_ends)
    return [of_ends[ends] for ends in dict.fromkeys(turns)]


def remarkable(graph: TaskGraph, shading: Shading, *, most: int) -> list[Edge]:
    """Return the most credited transitions and the most blamed ones, half of each.

    In a comparison: those with opposite signs, then those with the greatest differences.
    """
    valued = [edge for edge in graph.edges if shading.value(edge) is not None]
    if shading.others is not None:
        valued.sort(key=lambda edge: (not shading.is_flipped(edge), -abs(_value(edge, shading))))
        return valued[:most]
    valued.sort(key=lambda edge: _value(edge, shading), reverse=True)
    credited = [edge for edge in valued if _value(edge, shading) > 0][: most // 2]
    blamed = [edge for edge in valued if _value(edge, shading) < 0][-(most - most // 2) :]
    return [*credited, *blamed]


def partings(steps: pa.Table) -> list[Ends]:
    """Return the transitions after which rollouts end otherwise than those that left otherwise.

    The greatest come first: the difference of the shares of wins, times the rollouts of the smaller
    side. States that only won or only failed rollouts visited are left out.
    """
    won = steps["succeeded"].cast(pa.int32())
    rows = steps.select([*_PAIR, "trajectory_id"]).append_column("won", won)
    taken = _ended(rows, _PAIR)
    visited = {row["state_id"]: row for row in _ended(rows, ["state_id"])}
    weights: dict[Ends, float] = {}
    for row in taken:
        here = visited[row["state_id"]]
        num_others = here["num"] - row["num"]
        if num_others and 0 < here["won"] < here["num"]:
            gap = row["won"] / row["num"] - (here["won"] - row["won"]) / num_others
            weights[row["state_id"], row["next_state_id"]] = abs(gap) * min(row["num"], num_others)
    return sorted((ends for ends in weights if weights[ends]), key=lambda e: (-weights[e], e))


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


def _ended(rows: pa.Table, keys: list[str]) -> list[dict[str, Any]]:
    """Return for each key how many rollouts were there, and how many of them won."""
    each = rows.group_by([*keys, "trajectory_id"]).aggregate([("won", "max")])
    ended = each.group_by(keys).aggregate([("won_max", "count"), ("won_max", "sum")])
    return ended.rename_columns([*keys, "num", "won"]).to_pylist()


def _is_advantage(name: str) -> bool:
    parts = split_estimator_column(name)
    return parts is not None and parts[1] == "advantage"


def _value(edge: Edge, shading: Shading) -> float:
    return shading.value(edge) or 0.0
