"""State graphs as igraph objects, with everything the graph tables know.

Vertices carry the columns of `nodes.parquet`; edges carry those of `edges.parquet`, one edge for
each action between two states.
"""

from pathlib import Path
from typing import Any

import igraph
import pyarrow.parquet as pq

from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, Store, open_store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.parquet.snapshot import unchanged


def to_igraph(
    store: AnyStore, *, task_id: str, run_id: str | None = None, iteration: int | None = None
) -> igraph.Graph:
    """Return one task's state graph as a directed igraph graph; vertex i is state i.

    Example:
        graph = to_igraph("store", task_id="kitchen-12", run_id="r0", iteration=0)
        graph.distances(target=graph.vs["is_goal"].index(True), weights="cost")
        graph.to_networkx()  # a MultiDiGraph where two actions lead from a state to another one

    Args:
        store: A store, or its path.
        task_id: The task.
        run_id: Its run; not needed if there is only one.
        iteration: Its iteration, likewise.

    Raises:
        InputError: The iteration has no graph tables, or they have no such task.
    """
    store = open_store(store)
    run_id, iteration = store.one_iteration(run_id, iteration)
    nodes, edges = _read(store, run_id, iteration, task_id)
    graph = igraph.Graph(
        len(nodes),
        [(edge["state_id"], edge["next_state_id"]) for edge in edges],
        directed=True,
        graph_attrs={"run_id": run_id, "iteration": iteration, "task_id": task_id},
    )
    for name in nodes[0]:
        graph.vs[name] = [node[name] for node in nodes]
    for name in edges[0] if edges else ():
        graph.es[name] = [edge[name] for edge in edges]
    return graph


def _read(
    store: Store, run_id: str, iteration: int, task_id: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    folder = store.graph_dir(run_id, iteration)
    nodes, edges = unchanged(
        store,
        lambda: [_rows(folder / name, task_id) for name in ("nodes.parquet", "edges.parquet")],
        run_id=run_id,
        iteration=iteration,
    )
    if not nodes:
        raise InputError(f"{folder / 'nodes.parquet'} has no task {task_id!r}")
    return sorted(nodes, key=lambda node: node["state_id"]), edges


def _rows(path: Path, task_id: str) -> list[dict[str, Any]]:
    if not path.exists():
        raise InputError(f"{path} does not exist: run `graphcredit credit STORE -e graphgpo`")
    open_parquet(path).close()
    rows = pq.read_table(path.absolute(), filters=[("task_id", "=", task_id)]).to_pylist()
    for row in rows:
        for name in ("task_id", "run_id", "iteration"):
            row.pop(name, None)
    return rows
