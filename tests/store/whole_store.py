"""A store with a file of every kind that keeps every rule, and ways to break one."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store import Store
from graphcredit.store.schema import (
    CONFIGURATION_KEY,
    CREDIT_COLUMNS,
    EDGE_COLUMNS,
    ENTITY_COLUMNS,
    NODE_COLUMNS,
    RELATION_COLUMNS,
    STATE_SCORE_COLUMNS,
    Column,
    arrow_schema,
)
from tests.worlds import START, trajectory, worked_example, write_store

EARLIER = START - timedelta(hours=1)
STEPS = "steps/run_id=r0/iteration=000000/w0-000000.parquet"
CREDIT = "credit/run_id=r0/iteration=000000/w0-000000.parquet"
NODES = "graph/run_id=r0/iteration=000000/nodes.parquet"
EDGES = "graph/run_id=r0/iteration=000000/edges.parquet"
SCORES = "history/run_id=r0/state_scores.parquet"
VECTORS = "embeddings/ngram-0123456789ab/0123456789abcdef.parquet"
ENTITIES = "er_graph/entities.parquet"
RELATIONS = "er_graph/relations.parquet"


def write_rows(
    path: Path,
    columns: tuple[Column, ...],
    rows: list[Mapping[str, Any]],
    metadata: Mapping[bytes, bytes] | None = None,
) -> None:
    """Write rows as a Parquet file; what a row leaves out is null."""
    schema = arrow_schema(columns)
    if metadata:
        schema = schema.with_metadata(metadata)
    full = [{name: row.get(name) for name in schema.names} for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(full, schema=schema), path)


def whole_store(root: Path) -> Store:
    """Return the worked example, one trajectory whose worker died, and every other kind of file."""
    steps = [*worked_example(), *trajectory("dead", "A a B b A", success=None)]
    store = write_store(root, steps)
    credit = [
        {
            "trajectory_id": step["trajectory_id"],
            "step_index": step["step_index"],
            "state_id": None if step["trajectory_id"] == "dead" else 0,
        }
        for step in steps
    ]
    write_rows(root / CREDIT, CREDIT_COLUMNS, credit)
    node = {"task_id": "t0", "visits": 1, "num_trajectories": 1, "success_rate": 1.0}
    nodes = [
        node | {"state_id": 0, "state": "A", "is_goal": False, "num_merged": 1},
        node | {"state_id": 1, "state": "won", "is_goal": True, "num_merged": 0},
    ]
    write_rows(root / NODES, NODE_COLUMNS, nodes)
    edge = {"task_id": "t0", "state_id": 0, "next_state_id": 1, "action": "a"}
    write_rows(root / EDGES, EDGE_COLUMNS, [edge | {"visits": 1, "cost": 1.0, "is_pruned": False}])
    score = {"task_id": "t0", "state": "A", "num_total": 3, "num_success": 1}
    score |= {"score": 0.5, "num_rollouts": 2}
    write_rows(root / SCORES, STATE_SCORE_COLUMNS, [score], {CONFIGURATION_KEY: b'{"formula": 4}'})
    vectors = {"text_hash": [b"0123456789abcdef"], "vector": [[0.5, 0.5]]}
    (root / VECTORS).parent.mkdir(parents=True)
    pq.write_table(pa.table(vectors), root / VECTORS)
    entity = {"task_id": "t0", "entity_id": "e0", "name": "Ada", "is_answer": True}
    write_rows(root / ENTITIES, ENTITY_COLUMNS, [entity])
    relation = {"task_id": "t0", "head_id": "e0", "relation": "knows", "tail_id": "e0"}
    write_rows(root / RELATIONS, RELATION_COLUMNS, [relation])
    return store


def edit(relative: str, change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Path], None]:
    """Return a fault: the rows of a file, changed in place by `change`."""

    def fault(root: Path) -> None:
        schema = pq.read_schema(root / relative)
        # Another program's schema allows a null where ours does not.
        schema = pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
        rows = pq.read_table(root / relative, schema=schema, partitioning=None).to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), root / relative)

    return fault


def set_value(relative: str, row: int, column: str, value: Any) -> Callable[[Path], None]:
    """Return a fault: one value of a file."""
    return edit(relative, lambda rows: rows[row].update({column: value}))


def change_table(relative: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    """Return a fault: a file's table, replaced by what `change` makes of it."""

    def fault(root: Path) -> None:
        path = root / relative
        pq.write_table(change(pq.read_table(path, partitioning=None)), path)

    return fault


def add_file(relative: str, content: bytes = b"not Parquet") -> Callable[[Path], None]:
    """Return a fault: a file that was not there, or has other content now."""

    def fault(root: Path) -> None:
        (root / relative).parent.mkdir(parents=True, exist_ok=True)
        (root / relative).write_bytes(content)

    return fault


def copy_file(source: str, target: str) -> Callable[[Path], None]:
    """Return a fault: a file under two names."""

    def fault(root: Path) -> None:
        add_file(target, (root / source).read_bytes())(root)

    return fault


def move_file(source: str, target: str) -> Callable[[Path], None]:
    """Return a fault: a file under another name."""

    def fault(root: Path) -> None:
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        (root / source).rename(root / target)

    return fault


def damage_column(relative: str, column: str) -> Callable[[Path], None]:
    """Return a fault: a column's data is noise, while the file's footer is whole."""

    def fault(root: Path) -> None:
        path = root / relative
        content = bytearray(path.read_bytes())
        chunk = _chunk(path, column)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        length = chunk.total_compressed_size
        content[start : start + length] = b"\xff" * length
        path.write_bytes(content)

    return fault


def _chunk(path: Path, column: str) -> Any:
    chunks = pq.read_metadata(path).row_group(0)
    found = [chunks.column(index) for index in range(chunks.num_columns)]
    return next(chunk for chunk in found if chunk.path_in_schema.partition(".")[0] == column)
