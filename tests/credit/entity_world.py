"""Entity-relation graphs written by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from graphcredit.store.parquet.er_graph import ENTITY_SCHEMA, RELATION_SCHEMA, ErGraph

Row = Mapping[str, Any]


def entity(name: str, *aliases: str, task_id: str = "t0", answers: bool = False) -> dict[str, Any]:
    """Return an entity whose id is `id of <name>`."""
    return {
        "task_id": task_id,
        "entity_id": f"id of {name}",
        "name": name,
        "aliases": list(aliases) or None,
        "is_answer": answers,
    }


def relations(*pairs: str, task_id: str = "t0") -> list[dict[str, Any]]:
    """Return relations from words such as `"A-B"`: from A to B."""
    ends = [pair.split("-") for pair in pairs]
    return [
        {
            "task_id": task_id,
            "head_id": f"id of {head}",
            "relation": "knows",
            "tail_id": f"id of {tail}",
        }
        for head, tail in ends
    ]


def er_graph(entities: Iterable[Row], related: Iterable[Row] = ()) -> ErGraph:
    """Return a graph of rows."""
    return ErGraph(
        entities=pa.Table.from_pylist(list(entities), schema=ENTITY_SCHEMA),
        relations=pa.Table.from_pylist(list(related), schema=RELATION_SCHEMA),
    )


def world_of_the_random_logs() -> ErGraph:
    """Return what the tasks of `strategies.logs` are about.

    task-0: A is the answer; B one relation away, the apple two, C unreachable, `won` no entity.
    task-1: B and C answer, and nothing is related. task-2: entities, no answer.
    """
    zero, one, two = ({"task_id": f"task-{n}"} for n in range(3))
    return er_graph(
        [
            entity("A", **zero, answers=True),
            entity("B", "b then", **zero),
            entity("Ä 🍎", "apple", **zero),
            entity("C", **zero),
            entity("B", **one, answers=True),
            entity("C", "won", **one, answers=True),
            entity("A", **two),
            entity("won", **two),
        ],
        [*relations("B-A", "B-Ä 🍎", **zero), *relations("A-won", "won-A", **two)],
    )
