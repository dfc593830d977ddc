"""Credit and history as an earlier version of the program left them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store import Store
from graphcredit.store.schema import CONFIGURATION_KEY


def as_made_before(store: Store) -> None:
    """Leave spo3 and its history of run r0 as they were when a last step's target counted too.

    The version of the formula was not written then, and `history/` had a row for each goal.
    """
    for path in store.root.glob("credit/*/*/*.parquet"):
        table, made_by = _read(path)
        made_by["spo3"].pop("formula", None)
        _write(path, table, made_by)
    for path in store.root.glob("graph/*/*/*.parquet"):
        _write(path, _read(path)[0], {})
    path = store.history_path("r0")
    table, made_by = _read(path)
    made_by.pop("formula", None)
    rows = [row | {"num_total": row["num_total"] + 1} for row in table.to_pylist()]
    goal = rows[0] | {"state": None, "num_total": 1, "num_success": 1}
    schema = pa.schema([field.with_nullable(True) for field in table.schema])
    _write(path, pa.Table.from_pylist([*rows, goal], schema=schema), made_by)


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    table = pq.ParquetFile(path).read()
    return table, json.loads(table.schema.metadata[CONFIGURATION_KEY])


def _write(path: Path, table: pa.Table, made_by: dict[str, Any]) -> None:
    pq.write_table(
        table.replace_schema_metadata({CONFIGURATION_KEY: json.dumps(made_by).encode()}), path
    )
