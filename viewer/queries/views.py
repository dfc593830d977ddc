"""Run SQL over the store's views, which stay open: opening them reads the footer of every file.

DuckDB reads only the data that a query needs, and spills to disk, so memory does not grow with the
store. What several queries begin with, they keep as a table beside the open views.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType

import pyarrow as pa

from graphcredit.store.errors import QueryRefusedError
from graphcredit.store.files.scratch import ScratchFolder
from graphcredit.store.layout import Store
from graphcredit.store.parquet.snapshot import Stamp, stamp, unchanged
from graphcredit.store.sql.catalog import Connection, connect

MEMORY_LIMIT = "1GiB"
"""Memory limit of each of the `MOST_OPEN` connections; beyond it, DuckDB uses temporary files."""

MOST_OPEN = 4
"""Most iterations, or whole runs, whose views are open at a time."""

_keeping = Lock()
"""Held while a table is made, so that no two threads make the same one."""


def answer(
    store: Store,
    sql: str,
    parameters: Sequence[object] = (),
    *,
    run_id: str,
    iteration: int | None,
    tables: Mapping[str, str] = MappingProxyType({}),
) -> pa.Table:
    """Run trusted SQL over the views of a run or an iteration.

    Args:
        store: The store.
        sql: One statement over the views.
        parameters: Values for its `?`.
        run_id: Restrict the views to this run.
        iteration: Restrict the views to this iteration; None for all of the run.
        tables: Tables that the statement also reads: name to SQL over the views. Each is computed
            once while the files stay the same.
    """

    def read() -> pa.Table:
        with _views(store, run_id, iteration) as views:
            for name, rows in tables.items():
                with _keeping:
                    views.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {rows}")
            return views.sql(sql, params=list(parameters) or None).to_arrow_table()

    return unchanged(store, read, run_id=run_id, iteration=iteration)


def columns(store: Store, view: str, *, run_id: str, iteration: int | None) -> list[str]:
    """Return the columns of a view; estimators add to those of the schema."""

    def read() -> list[str]:
        with _views(store, run_id, iteration) as views:
            return views.sql(f"FROM {view}").columns

    return unchanged(store, read, run_id=run_id, iteration=iteration)


@contextmanager
def _views(store: Store, run_id: str, iteration: int | None) -> Generator[Connection]:
    """Yield a cursor of the open views: threads cannot share a connection."""
    opened = _open(store.root, run_id, iteration, stamp(store, run_id, iteration))
    with opened.connection.cursor() as cursor:
        try:
            yield cursor
        except Exception as error:  # any error of DuckDB, which only store/ may import
            raise QueryRefusedError(f"DuckDB refused the query: {error}") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class _Open:
    connection: Connection
    spill: ScratchFolder


@lru_cache(maxsize=MOST_OPEN)
def _open(root: Path, run_id: str, iteration: int | None, files: Stamp) -> _Open:
    store = Store(root)
    connection = connect(store, run_id=run_id, iteration=iteration)
    spill = ScratchFolder()
    connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    connection.execute("SET temp_directory = ?", [str(spill.path)])
    connection.execute("SET parquet_metadata_cache = true")
    return _Open(connection=connection, spill=spill)
