"""The catalog: DuckDB connections with the store's views."""

import time
from collections.abc import Callable, Generator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar, cast

import duckdb
import pyarrow as pa

from graphcredit.store.errors import QueryRefusedError, SchemaError
from graphcredit.store.files.scratch import ScratchFolder
from graphcredit.store.layout import Store, check_name, refuse_foreign_folders
from graphcredit.store.parquet.numbers import table_of
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.parquet.snapshot import read_once, unchanged
from graphcredit.store.provenance.freshness import (
    FRESHNESS_SCHEMA,
    CreditFreshness,
    credit_freshness,
    doubts,
    freshness_rows,
)
from graphcredit.store.sql.result import QueryResult
from graphcredit.store.sql.views import (
    ANY_ITERATION,
    BASE_VIEWS,
    CREDIT_STATE,
    DERIVED_VIEWS,
    base_view_sql,
    literal_path,
    named_views,
    parquet_source,
    view_files,
)

Connection = duckdb.DuckDBPyConnection
"""For annotations in modules that may not import duckdb."""

_Answer = TypeVar("_Answer")

_MEMORY = "2GiB"
"""Of a question; what does not fit goes to temporary files."""

_REPLACED = (
    "files of the store were replaced while the query ran: unless the query did so itself, its "
    "rows may mix old and new files. Run it again"
)


def connect(
    store: Store,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    sql: str = "",
    is_verified: bool = False,
) -> Connection:
    """Return an in-memory DuckDB connection with the store's views, for trusted SQL.

    The views read the files when they are queried. If another process, for example `graphcredit
    credit`, may replace files, connect and query within `snapshot.unchanged`. Only `credit_state`
    is fixed when the connection is made.

    Args:
        store: The store.
        run_id: Restrict the views to this run; files of others are not opened.
        iteration: Restrict the views to this iteration, likewise.
        sql: Make only the views that this names, and those that they read; by default all.
        is_verified: Whether to read all files once to verify their digests. By default only the
            footers are verified; damage elsewhere is left to the checks.

    Raises:
        SchemaError: A file cannot be read, or has a newer schema version.
    """
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET TimeZone='UTC'")
        names = named_views(sql)
        _create_views(connection, store, names, run_id, iteration, is_verified=is_verified)
        if CREDIT_STATE in names:
            states = credit_freshness(store, run_id=run_id, iteration=iteration)
            connection.register("found", table_of(freshness_rows(states), FRESHNESS_SCHEMA))
            connection.execute(f"CREATE TABLE {CREDIT_STATE} AS FROM found")
            connection.unregister("found")
    except BaseException:
        connection.close()
        raise
    return connection


def with_views(
    store: Store,
    ask: Callable[[Connection], _Answer],
    *,
    run_id: str | None = None,
    iteration: int | None = None,
) -> _Answer:
    """Return the answer to a question that is put to the views of a store, verified and unchanged.

    Raises:
        ReplacedError: Files were replaced at every attempt.
        SchemaError: A file cannot be read.
    """

    def answer() -> _Answer:
        views = connect(store, run_id=run_id, iteration=iteration, is_verified=True)
        with views as connection, ScratchFolder() as spill, readable_files():
            connection.execute(f"SET memory_limit = '{_MEMORY}'")
            connection.execute("SET temp_directory = ?", [str(spill)])
            return ask(connection)

    return unchanged(store, answer, run_id=run_id, iteration=iteration)


def run_trusted_query(
    store: Store,
    sql: str,
    parameters: Sequence[object] = (),
    *,
    max_rows: int | None = None,
    run_id: str | None = None,
    iteration: int | None = None,
) -> QueryResult:
    """Run any SQL over the store's views, in this process and without limits.

    Only for SQL from a trusted author: it can read and write every file that the caller can.

    Args:
        store: The store.
        sql: One or more statements; the rows of the last one are returned.
        parameters: Values for the `?` in a single statement.
        max_rows: Most rows to return; None for all.
        run_id: Restrict the views to this run; files of others are not opened.
        iteration: Restrict the views to this iteration, likewise.

    Raises:
        QueryRefusedError: DuckDB refused the SQL.
        ReplacedError: It failed, and files were replaced while it ran.
        SchemaError: A file cannot be read.
    """
    started = time.perf_counter()
    (table, told), is_unchanged = read_once(
        store,
        lambda: _answer(store, sql, parameters, run_id, iteration),
        run_id=run_id,
        iteration=iteration,
    )
    if not is_unchanged:
        # The statement may have replaced them itself, so do not run it again.
        told = (*told, _REPLACED)
    shown = table if max_rows is None else table.slice(0, max_rows)
    num_left_out = table.num_rows - shown.num_rows
    return QueryResult(
        table=shown,
        is_cut=num_left_out > 0,
        num_left_out=num_left_out,
        seconds=time.perf_counter() - started,
        doubts=told,
    )


def _answer(
    store: Store, sql: str, parameters: Sequence[object], run_id: str | None, iteration: int | None
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the rows, and warnings about the credit in the store."""
    with connect(store, run_id=run_id, iteration=iteration) as connection:
        states = connection.sql(f"FROM {CREDIT_STATE}").to_arrow_table().to_pylist()
        try:
            # A statement without rows, such as CREATE, gives None; the stubs do not say so.
            relation = cast(
                "duckdb.DuckDBPyRelation | None",
                connection.sql(sql, params=list(parameters) or None),
            )
            table = pa.table({}) if relation is None else relation.to_arrow_table()
        except duckdb.Error as error:
            raise QueryRefusedError(f"DuckDB refused the query: {error}") from error
    return table, tuple(doubts(CreditFreshness(**state) for state in states))


def _create_views(
    connection: Connection,
    store: Store,
    names: Set[str],
    run_id: str | None,
    iteration: int | None,
    *,
    is_verified: bool,
) -> None:
    refuse_foreign_folders(store)
    run = "run_id=*" if run_id is None else f"run_id={check_name('run_id', run_id)}"
    folders = [ANY_ITERATION]
    if iteration is not None:  # foreign writers may pad with fewer zeros
        shards = store.shards(run_id, iteration)
        folders = sorted(
            {f"iteration={iteration:06d}", *(shard.path.parent.name for shard in shards)}
        )
    try:
        for view in (view for view in BASE_VIEWS if view.name in names):
            patterns = dict.fromkeys(
                view.pattern.replace("run_id=*", run).replace(ANY_ITERATION, folder)
                for folder in folders
            )
            narrowed = [replace(view, pattern=pattern) for pattern in patterns]
            paths = [path for each in narrowed for path in view_files(store.root.resolve(), each)]
            for path in paths:
                open_parquet(path, whole=is_verified).close()
            files = [literal_path(str(path)) for path in paths]
            sources = [parquet_source(view, files)] if files else []
            fields = [
                field
                for source in (sources if view.is_open else ())
                for field in connection.sql(f"FROM {source} LIMIT 0").to_arrow_table().schema
            ]
            sql = base_view_sql(view.all_columns(fields), sources)
            connection.execute(f"CREATE VIEW {view.name} AS {sql}")
        for name in (name for name in DERIVED_VIEWS if name in names):
            connection.execute(f"CREATE VIEW {name} AS {DERIVED_VIEWS[name]}")
    except duckdb.Error as error:
        raise _unreadable(f"the views of {store.root}", error) from error


@contextmanager
def readable_files() -> Generator[None]:
    """Turn an error of DuckDB about the content of a file into a SchemaError. Also a decorator.

    Use it around queries: only then are the files read.

    Raises:
        SchemaError: A file is damaged, or has a value that does not fit its type.
    """
    try:
        yield
    except (duckdb.InvalidInputException, duckdb.IOException, duckdb.ConversionException) as error:
        raise _unreadable("views", error) from error


def _unreadable(who: str, error: duckdb.Error) -> SchemaError:
    reason = str(error).partition("\n")[0]
    return SchemaError(
        f"{who} read every shard, and one cannot be read: {reason}. "
        "`graphcredit check STORE` names all such, and says how to take them out."
    )
