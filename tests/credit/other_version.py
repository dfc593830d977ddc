"""Credit and history as another version of a formula left them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store import Store
from graphcredit.store.schema import CONFIGURATION_KEY


def as_made_before(store: Store) -> None:
    """Let the columns of spo3, and its history of run r0 with other counts, be of version 1."""
    for path in store.root.glob("*/*/*/*.parquet"):
        table, made_by = _read(path)
        if "spo3" in made_by:
            made_by["spo3"]["formula"] = 1
            _write(path, table, made_by)
    path = store.history_path("r0")
    table, made_by = _read(path)
    rows = [row | {"num_total": row["num_total"] + 1} for row in table.to_pylist()]
    _write(path, pa.Table.from_pylist(rows, schema=table.schema), made_by | {"formula": 1})


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    table = pq.ParquetFile(path).read()
    return table, json.loads(table.schema.metadata.get(CONFIGURATION_KEY, b"{}"))


def _write(path: Path, table: pa.Table, made_by: dict[str, Any]) -> None:
    metadata = {**table.schema.metadata, CONFIGURATION_KEY: json.dumps(made_by).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
