"""Writers at the same time, for tests of locks: a module of its own, since processes import it."""

from pathlib import Path

from graphcredit.store.layout import Store
from graphcredit.store.parquet.er_graph import ErGraph, merge_er_graph
from tests.credit.entity_world import entity, er_graph, relations


def graph_of(*tasks: str) -> ErGraph:
    """Return Ada, who knows Bob, in each task."""
    return er_graph(
        [entity(name, task_id=task) for task in tasks for name in ("Ada", "Bob")],
        [row for task in tasks for row in relations("Ada-Bob", task_id=task)],
    )


def merge_five_graphs(root: Path, first: int) -> None:
    """Merge the graphs of five tasks into a store, one after the other."""
    for number in range(first, first + 5):
        merge_er_graph(Store(root), graph_of(f"t{number}"))
