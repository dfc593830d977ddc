"""The entity-relation graph of a store: the entities of each task, and which of them answer it."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.errors import InputError, SchemaError
from graphcredit.store.files.lock import LockFile
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import conform, read_table, refuse_newer
from graphcredit.store.schema import ENTITY_COLUMNS, RELATION_COLUMNS, Column, arrow_schema

ENTITY_SCHEMA = arrow_schema(ENTITY_COLUMNS)
RELATION_SCHEMA = arrow_schema(RELATION_COLUMNS)


@dataclass(frozen=True, kw_only=True, slots=True)
class ErGraph:
    """Entities and relations of any number of tasks."""

    entities: pa.Table
    """`ENTITY_SCHEMA`."""
    relations: pa.Table
    """`RELATION_SCHEMA`; a relation joins two entities of one task."""

    def digest(self) -> str:
        """Return a hash of all entities and relations."""
        content = hashlib.sha256()
        for table in (self.entities, self.relations):
            for batch in table.combine_chunks().to_batches():
                content.update(batch.serialize())
        return content.hexdigest()[:16]

    def of_tasks(self, tasks: Collection[str]) -> "ErGraph":
        """Return the part of the graph that belongs to some tasks."""
        wanted = pa.array(sorted(tasks), pa.string())
        entities, relations = (
            table.filter(pc.is_in(table["task_id"], value_set=wanted))
            for table in (self.entities, self.relations)
        )
        return ErGraph(entities=entities, relations=relations)


def read_er_graph(store: Store) -> ErGraph:
    """Read both tables, whoever wrote them.

    Raises:
        InputError: The store has none.
        SchemaError: A table cannot be read, lacks a column, or has a null where none may be.
    """
    entities, relations = _paths(store)
    for path in (entities, relations):
        if not path.is_file():
            raise InputError(
                f"the entities of tasks are in {entities} and {relations}: found no {path.name}. "
                "`graphcredit collect STORE --env search …` writes both, and `graphcredit er-graph "
                "STORE` draws them from the texts of a log."
            )
    return ErGraph(
        entities=_read(entities, ENTITY_COLUMNS), relations=_read(relations, RELATION_COLUMNS)
    )


def merge_er_graph(store: Store, graph: ErGraph) -> None:
    """Write the entities and relations of some tasks; they replace earlier ones of these tasks.

    Several processes may do this at the same time. Each table is replaced atomically.
    """
    entities, relations = _paths(store)
    entities.parent.mkdir(parents=True, exist_ok=True)
    tasks = pc.unique(
        pa.concat_arrays(
            t["task_id"].combine_chunks().cast(pa.string())
            for t in (graph.entities, graph.relations)
        )
    )
    with LockFile(entities.parent, os.O_RDONLY | os.O_DIRECTORY) as lock:
        lock.lock(wait=True)
        refuse_newer((entities, relations))
        # Entities first: a reader between the two writes must find the entities of each relation.
        _merge(entities, ENTITY_COLUMNS, graph.entities, tasks)
        _merge(relations, RELATION_COLUMNS, graph.relations, tasks)


def _paths(store: Store) -> tuple[Path, Path]:
    directory = store.root / "er_graph"
    return directory / "entities.parquet", directory / "relations.parquet"


def _read(path: Path, columns: tuple[Column, ...]) -> pa.Table:
    table = read_table(path, columns)
    for column in columns:
        if not column.nullable and table[column.name].null_count:
            raise SchemaError(
                f"{path}: {column.name} must not be null: found {table[column.name].null_count} "
                "rows with none. Write the file again without them."
            )
    return table


def _merge(path: Path, columns: tuple[Column, ...], added: pa.Table, tasks: pa.Array) -> None:
    """Rewrite one table, unless nothing changes."""
    merged = conform(added, columns, where="the new rows").replace_schema_metadata()
    before = _read(path, columns).replace_schema_metadata() if path.exists() else None
    if before is not None:
        others = before.filter(pc.invert(pc.is_in(before["task_id"], value_set=tasks)))
        merged = pa.concat_tables([others, merged])
    keys = [(c.name, "ascending") for c in columns if c.type == pa.string()]
    merged = merged.sort_by(keys)
    if before is None or not merged.equals(before):
        write_table(merged.cast(arrow_schema(columns)), path)
