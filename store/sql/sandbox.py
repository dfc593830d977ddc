"""A sandbox for SQL: it sees the store's views and nothing else, within limits.

DuckDB has no access to the file system here: pyarrow opens the shards, and they are registered as
data sets. Giving DuckDB access to the store's files would be unsafe: a statement that parses as a
SELECT can contain a COPY that overwrites a file.
"""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from graphcredit.store.confined.limits import MIB
from graphcredit.store.errors import OptionError, QueryRefusedError
from graphcredit.store.layout import Store, refuse_foreign_folders
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.provenance.freshness import (
    FRESHNESS_SCHEMA,
    CreditFreshness,
    credit_freshness,
    doubts,
    freshness_rows,
)
from graphcredit.store.schema import arrow_schema
from graphcredit.store.sql.result import QueryResult
from graphcredit.store.sql.views import (
    BASE_VIEWS,
    CREDIT_STATE,
    DERIVED_VIEWS,
    OF_CREDIT,
    VIEW_NAMES,
    BaseView,
    base_view_sql,
    named_views,
    view_files,
)

_THREADS = 2
"""Threads of DuckDB; more threads hold more data at a time."""

_FRUGALLY: dict[str, Any] = {
    "batch_size": 2048,
    "batch_readahead": 0,
    "fragment_readahead": 1,
    "fragment_scan_options": ds.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=MIB, pre_buffer=False
    ),
}
"""Options for scans of shards that keep little in memory."""

_LOCKS = (
    "SET temp_directory=''",
    "SET autoinstall_known_extensions=false",
    "SET autoload_known_extensions=false",
    "SET allow_community_extensions=false",
    "SET allow_persistent_secrets=false",
    "SET python_enable_replacements=false",
    "SET python_scan_all_frames=false",
    "SET enable_external_access=false",
    "SET lock_configuration=true",
)
_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
"""DuckDB would list the data sets behind the views too."""

_VIEWS = f"SELECT unnest({sorted(VIEW_NAMES)}) AS name"

_KINDS = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
"""SELECT covers FROM, DESCRIBE, SHOW and SUMMARIZE; MULTI is PIVOT."""

_OUT_OF_MEMORY = ("out of memory", "memory allocation failed", "bad_alloc")
"""Parts of the out-of-memory messages of DuckDB and its libraries, in lower case."""

_AGAIN_SECONDS = 0.05
"""Between two interruptions of a query that is late: one between two statements stops neither."""


def run_query(
    store: Store,
    sql: str,
    *,
    max_rows: int | None = 10_000,
    seconds: float = 30.0,
    memory: int = 1024 * MIB,
) -> QueryResult:
    """Run one SELECT over the store's views: it reads the store's shards, and writes nothing.

    Args:
        store: The store.
        sql: One statement: SELECT, FROM, WITH … SELECT, PIVOT, DESCRIBE, SUMMARIZE, SHOW TABLES.
        max_rows: Most rows to return; None for all that fit in memory.
        seconds: Time limit, including the time to open the files.
        memory: Most bytes that DuckDB may use, and also the limit of the result.

    Raises:
        QueryRefusedError: The statement is not allowed, fails, or exceeds a limit.
        SchemaError: A shard cannot be read.
        StoreFormatError: A shard's folder is not that of a run and iteration.
    """
    _check_limits(max_rows, seconds, memory)
    refuse_foreign_folders(store)
    return unchanged(store, lambda: _run(store, sql, max_rows, seconds, memory))


def _check_limits(max_rows: int | None, seconds: float, memory: int) -> None:
    if max_rows is not None and max_rows < 1:
        raise OptionError(f"max_rows must be 1 or more, or None for all rows: got {max_rows}")
    if not 0 < seconds <= 86_400:
        raise OptionError(f"seconds must be above 0 and at most a day: got {seconds}")
    if memory < 64 * MIB:
        raise OptionError(f"memory must be at least 64 MiB: got {memory} bytes")


def _run(store: Store, sql: str, max_rows: int | None, seconds: float, memory: int) -> QueryResult:
    started = time.perf_counter()
    root = store.root.resolve()
    with _open_locked(memory) as connection, _deadline(connection, seconds) as is_late:
        try:
            states, relation = _relation(connection, root, sql)
            reader = relation.to_arrow_reader(2048)
            table, num_left_out = _read(reader, max_rows, memory, started + seconds / 2)
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError) as error:
            # An error between two batches of rows is an OSError with DuckDB's message.
            raise _refusal(error, seconds if is_late.is_set() else None, memory) from error
    return QueryResult(
        table=table,
        is_cut=num_left_out != 0,
        num_left_out=num_left_out,
        seconds=time.perf_counter() - started,
        doubts=tuple(doubts(states)),
    )


def _relation(
    connection: duckdb.DuckDBPyConnection, root: Path, sql: str
) -> tuple[list[CreditFreshness], duckdb.DuckDBPyRelation]:
    """Make the views that a statement reads; return how fresh their credit is, and the query."""
    _check_statement(connection, sql)
    lists_views = _SHOW_TABLES.fullmatch(sql)
    query = _VIEWS if lists_views else sql
    names = frozenset[str]() if lists_views else named_views(sql)
    states = _create_views(connection, root, names)
    try:
        return states, connection.sql(query)
    except duckdb.CatalogException:  # it has a name that is not in its text, or a wrong one
        states += _create_views(connection, root, set(VIEW_NAMES) - names)
        return states, connection.sql(query)


def _refusal(error: Exception, late: float | None, memory: int) -> QueryRefusedError:
    advice = "Select fewer rows or columns, filter by run_id and iteration, or allow more"
    if late is not None:
        return QueryRefusedError(
            f"the query was stopped: it must finish within {late:g} s. {advice}"
        )
    said = str(error).lower()
    if isinstance(error, MemoryError) or any(words in said for words in _OUT_OF_MEMORY):
        return QueryRefusedError(
            f"the query needs more than {memory // MIB} MiB of memory. {advice}"
        )
    return QueryRefusedError(f"DuckDB refused the query: {error}")


@contextmanager
def _deadline(connection: duckdb.DuckDBPyConnection, seconds: float) -> Generator[threading.Event]:
    """Interrupt what a connection does after some seconds; yield what is set from then on."""
    is_late, is_done = threading.Event(), threading.Event()

    def interrupt() -> None:
        wait = seconds
        while not is_done.wait(wait):
            is_late.set()
            connection.interrupt()
            wait = _AGAIN_SECONDS

    clock = threading.Thread(target=interrupt, daemon=True)
    clock.start()
    try:
        yield is_late
    finally:
        is_done.set()
        clock.join()


def _open_locked(memory: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:", config={"memory_limit": f"{memory // MIB}MiB", "threads": _THREADS}
    )
    connection.execute("SET TimeZone='UTC'")
    # Lock first: the column names below come from files that anyone may have written.
    for lock in _LOCKS:
        connection.execute(lock)
    return connection


def _create_views(
    connection: duckdb.DuckDBPyConnection, root: Path, names: Set[str]
) -> list[CreditFreshness]:
    """Make some views, and return how fresh the credit is that they show."""
    for view in (view for view in BASE_VIEWS if view.name in names):
        fields, sources = _register(connection, root, view)
        sql = base_view_sql(view.all_columns(fields), sources)
        connection.execute(f"CREATE TEMP VIEW {view.name} AS {sql}")
    for name in (name for name in DERIVED_VIEWS if name in names):
        connection.execute(f"CREATE TEMP VIEW {name} AS {DERIVED_VIEWS[name]}")
    states = credit_freshness(Store(root)) if names & OF_CREDIT else []
    if CREDIT_STATE in names:
        rows = freshness_rows(states)
        connection.register(CREDIT_STATE, pa.Table.from_pylist(rows, schema=FRESHNESS_SCHEMA))
    return states


def _register(
    connection: duckdb.DuckDBPyConnection, root: Path, view: BaseView
) -> tuple[list[pa.Field], list[str]]:
    """Register a view's files, one data set per layout of columns; return columns and names."""
    partitions = arrow_schema(view.partitions).remove_metadata()
    layouts: defaultdict[pa.Schema, list[str]] = defaultdict(list)
    for path in view_files(root, view):
        with open_parquet(path, whole=False) as file:
            fields = [_as_text(f) for f in file.schema_arrow if f.name not in partitions.names]
        layouts[pa.schema([*partitions, *fields]).remove_metadata()].append(str(path))
    sources: list[str] = []
    for number, (schema, paths) in enumerate(layouts.items()):
        dataset = ds.dataset(
            paths,
            schema=schema,
            format="parquet",
            partitioning=ds.partitioning(partitions, flavor="hive"),
            partition_base_dir=str(root),
        )
        sources.append(f"{view.name}_files_{number}")
        connection.register(sources[-1], _Frugal.of(dataset))
    return [field for schema in layouts for field in schema], sources


class _Frugal(ds.FileSystemDataset):  # pyright: ignore[reportUntypedBaseClass]
    """A data set whose scans hold about one row group in memory; pyarrow's default holds dozens."""

    @classmethod
    def of(cls, dataset: ds.FileSystemDataset) -> "_Frugal":
        """Return a frugal data set of the same files."""
        fragments = list(dataset.get_fragments())
        return cls(fragments, dataset.schema, dataset.format, dataset.filesystem)

    def scanner(self, **options: Any) -> ds.Scanner:
        """Return a scanner of the rows; DuckDB calls this whenever it reads."""
        return super().scanner(**_FRUGALLY, **options)


def _as_text(field: pa.Field) -> pa.Field:
    """Return a field with text in place of bytes: some writers do not mark text as such."""
    type_ = field.type
    if pa.types.is_list(type_):
        return field.with_type(pa.list_(_as_text(type_.value_field)))
    is_bytes = pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
    return field.with_type(pa.string()) if is_bytes else field


def _check_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryRefusedError(f"exactly one SQL statement is allowed: found {len(statements)}")
    kind = statements[0].type
    if kind not in _KINDS:
        raise QueryRefusedError(
            f"only SELECT is allowed: found {kind.name}. `graphcredit sql --unlocked` runs any "
            "statement, with your own permissions"
        )


def _read(
    reader: pa.RecordBatchReader, max_rows: int | None, memory: int, count_until: float
) -> tuple[pa.Table, int | None]:
    """Return the first rows, and the number of further ones; None of these if time runs out."""
    kept: list[pa.RecordBatch] = []
    room, num_left_out, num_bytes = max_rows, 0, 0
    for batch in reader:
        first = batch if room is None else batch.slice(0, room)
        num_left_out += batch.num_rows - first.num_rows
        num_bytes += first.nbytes
        if num_bytes > memory:
            raise MemoryError
        if first.num_rows:
            _check_text(first)
            kept.append(first)
        if room is not None:
            room -= first.num_rows
        if num_left_out and time.perf_counter() > count_until:
            return pa.Table.from_batches(kept, reader.schema), None
    return pa.Table.from_batches(kept, reader.schema), num_left_out


def _check_text(batch: pa.RecordBatch) -> None:
    """Raise QueryRefusedError for text that is not UTF-8, which pyarrow reads without an error."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise QueryRefusedError(
            f"text must be UTF-8: {error}. `graphcredit check STORE` names the files that are wrong"
        ) from error
