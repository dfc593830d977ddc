"""The catalog: the store's views, for any DuckDB."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import duckdb
import pyarrow as pa

from graphcredit.store.atomic import atomic_path
from graphcredit.store.errors import QueryRefusedError, SchemaError
from graphcredit.store.layout import Store, check_name, refuse_foreign_folders
from graphcredit.store.sandbox import QueryResult
from graphcredit.store.views import (
    ANY_ITERATION,
    BASE_VIEWS,
    DERIVED_VIEWS,
    base_view_sql,
    parquet_source,
)

Connection = duckdb.DuckDBPyConnection
"""For the annotations of those who may not import duckdb."""


def connect(store: Store, *, run_id: str | None = None, iteration: int | None = None) -> Connection:
    """Return an in-memory DuckDB connection with the store's views, for SQL that is trusted.

    Args:
        store: The store.
        run_id: The views hold only this run; files of others are not opened.
        iteration: The same for an iteration.

    Raises:
        SchemaError: A file cannot be read.
    """
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET TimeZone='UTC'")
        _create_views(connection, store, run_id, iteration)
    except BaseException:
        connection.close()
        raise
    return connection


def run_trusted_query(
    store: Store,
    sql: str,
    parameters: Sequence[object] = (),
    *,
    max_rows: int | None = None,
    run_id: str | None = None,
    iteration: int | None = None,
) -> QueryResult:
    """Run any SQL with the store's views at hand, in this process and without limits.

    Only for SQL whose author may do whatever the caller may: it can read and write every file.

    Args:
        store: The store.
        sql: One or more statements; the rows of the last one are returned.
        parameters: What the `?` in a single statement stand for.
        max_rows: Rows to return at most; None for all.
        run_id: The views hold only this run; files of others are not opened.
        iteration: The same for an iteration.

    Raises:
        QueryRefusedError: DuckDB refused the SQL.
        SchemaError: A file cannot be read.
    """
    started = time.perf_counter()
    with connect(store, run_id=run_id, iteration=iteration) as connection:
        try:
            # A statement without rows, such as CREATE, gives None, whatever the stubs say.
            relation = cast(
                "duckdb.DuckDBPyRelation | None",
                connection.sql(sql, params=list(parameters) or None),
            )
            table = pa.table({}) if relation is None else relation.to_arrow_table()
        except duckdb.Error as error:
            raise QueryRefusedError(f"DuckDB refused the query: {error}") from error
    shown = table if max_rows is None else table.slice(0, max_rows)
    num_left_out = table.num_rows - shown.num_rows
    return QueryResult(
        table=shown,
        is_cut=num_left_out > 0,
        num_left_out=num_left_out,
        seconds=time.perf_counter() - started,
    )


def rebuild_catalog(store: Store) -> None:
    """Write `store.duckdb`: the views, usable with the plain `duckdb` command line.

    The views read the files that are there when they are queried, so new shards need no new
    catalog. A store that has moved does (paths are absolute), and so does an estimator that wrote
    credit for the first time: its columns are in `credit` and `edges` from the next build on.

    Raises:
        SchemaError: A file cannot be read.
    """
    with (
        atomic_path(store.catalog_path) as temporary,
        duckdb.connect(str(temporary)) as connection,
    ):
        _create_views(connection, store)


def _create_views(
    connection: Connection, store: Store, run_id: str | None = None, iteration: int | None = None
) -> None:
    refuse_foreign_folders(store)
    run = "run_id=*" if run_id is None else f"run_id={check_name('run_id', run_id)}"
    folders = _iteration_folders(store, run_id, iteration)
    try:
        for view in BASE_VIEWS:
            patterns = {
                view.pattern.replace("run_id=*", run).replace(ANY_ITERATION, folder)
                for folder in folders
            }
            sources = [
                parquet_source(store.root, replace(view, pattern=pattern))
                for pattern in sorted(patterns)
            ]
            found = _columns_of(connection, sources) if view.is_open else []
            sql = base_view_sql(view.all_columns(found), sources)
            connection.execute(f"CREATE VIEW {view.name} AS {sql}")
        for name, sql in DERIVED_VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {sql}")
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise SchemaError(
            f"the views of {store.root} read every shard, and one cannot be read: {reason}. "
            "`graphcredit check STORE` names all such, and `--quarantine` moves them aside."
        ) from error


def _iteration_folders(store: Store, run_id: str | None, iteration: int | None) -> set[str]:
    """Return the names of the folders of an iteration: foreign writers may pad with less zeros."""
    if iteration is None:
        return {ANY_ITERATION}
    found = {shard.path.parent.name for shard in store.shards(run_id, iteration)}
    return found | {f"iteration={iteration:06d}"}


def _columns_of(connection: Connection, sources: list[str]) -> list[pa.Field]:
    return [
        field
        for source in sources
        for field in connection.sql(f"SELECT * FROM {source} LIMIT 0").to_arrow_table().schema
    ]
