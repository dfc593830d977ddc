"""One task's state graph as plain records, read from the store's graph tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A state."""

    state_id: int
    state: str
    is_goal: bool
    visits: int
    goal_distance: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """All steps from one state to another."""

    source: int
    target: int
    actions: tuple[str, ...]
    """The actions that led along here, the most frequent first."""
    visits: int
    advantage: float | None
    """Mean over the steps; None where none has credit."""
    is_pruned: bool
    """No step along here did anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskGraph:
    """The states of one task and the transitions between them."""

    nodes: tuple[Node, ...]
    """In the order of their ids."""
    edges: tuple[Edge, ...]
    """In the order of source and target."""


def read_task_graph(
    store: Store, *, run_id: str, iteration: int, task_id: str, column: str
) -> TaskGraph:
    """Read one task's graph, with the mean of one credit column on its edges.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        task_id: The task.
        column: An advantage that the edge table has, for example `graphgpo_step_advantage`.

    Raises:
        InputError: There are no graph tables, no such task, or no credit of that estimator.
    """
    folder = store.graph_dir(run_id, iteration)
    nodes = _rows(folder / "nodes.parquet", task_id)
    edges = _rows(folder / "edges.parquet", task_id)
    if edges and column not in edges[0]:
        raise InputError(
            f"{folder / 'edges.parquet'} has no {column}: run `graphcredit credit STORE "
            f"--estimator {column.partition('_')[0]}` first"
        )
    edges.sort(key=_ends)
    return TaskGraph(
        nodes=tuple(
            Node(**{name: row[name] for name in Node.__slots__})
            for row in sorted(nodes, key=lambda row: row["state_id"])
        ),
        edges=tuple(_edge(list(same), column) for _, same in groupby(edges, key=_ends)),
    )


def _ends(row: dict[str, Any]) -> tuple[int, int]:
    return row["state_id"], row["next_state_id"]


def _edge(rows: Sequence[dict[str, Any]], column: str) -> Edge:
    ordered = sorted(rows, key=lambda row: (-row["visits"], row["action"]))
    credited = [row for row in rows if row[column] is not None]
    visits = sum(row["visits"] for row in credited)
    total = sum(row[column] * row["visits"] for row in credited)
    return Edge(
        source=rows[0]["state_id"],
        target=rows[0]["next_state_id"],
        actions=tuple(row["action"] for row in ordered),
        visits=sum(row["visits"] for row in rows),
        advantage=total / visits if visits else None,
        is_pruned=all(row["is_pruned"] for row in rows),
    )


def _rows(path: Path, task_id: str) -> list[dict[str, Any]]:
    if not path.exists():
        raise InputError(f"{path} does not exist: run `graphcredit credit STORE` first")
    rows = pq.read_table(path, filters=[("task_id", "=", task_id)]).to_pylist()
    if not rows:
        raise InputError(f"{path} has no task {task_id!r}")
    return rows
