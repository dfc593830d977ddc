"""The child process of `sandbox.py`: it runs one query and exits.

DuckDB has no access to the file system here: pyarrow opens the shards, and they are registered as
data sets. Giving DuckDB access to the store's files would be unsafe: a statement that parses as a
SELECT can contain a COPY that overwrites a file.
"""

import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Set
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from graphcredit.store.confined.limits import (
    MIB,
    TOO_LARGE,
    limit_memory,
    limit_process,
    limit_time,
)
from graphcredit.store.errors import QueryRefusedError, SchemaError, StoreFormatError
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.provenance.freshness import (
    FRESHNESS_SCHEMA,
    CreditFreshness,
    credit_freshness,
    doubts,
    freshness_rows,
)
from graphcredit.store.schema import arrow_schema
from graphcredit.store.sql.sandbox import ROWS, QueryRequest
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

_OUT_OF_MEMORY = ("out of memory", "memory allocation failed", "bad_alloc")
"""Parts of the out-of-memory messages of DuckDB and its libraries, in lower case."""

_THREADS = 2
"""Threads of DuckDB and of pyarrow, each; more threads hold more data at a time."""

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


def main() -> None:
    """Read a request from stdin; write the rows and then the answer to stdout.

    Exit with `TOO_LARGE` if memory runs out.
    """
    request = QueryRequest(**json.loads(sys.stdin.buffer.read()))
    limit_process(request.memory)
    limit_time(request.seconds)
    try:
        answer = _run(request)
    except (SchemaError, StoreFormatError) as error:
        answer = {"status": "unreadable", "reason": str(error)}
    except QueryRefusedError as error:
        answer = {"status": "refused", "reason": str(error)}
    except MemoryError:
        raise SystemExit(TOO_LARGE) from None
    sys.stdout.buffer.write(json.dumps(answer).encode())


def _run(request: QueryRequest) -> dict[str, Any]:
    """Run the query, write its rows to stdout, and return the answer.

    Raises:
        QueryRefusedError: The query is not allowed, or fails.
        SchemaError: A shard cannot be read.
        MemoryError: The query needs too much memory.
    """
    started = time.perf_counter()
    try:
        connection = _open_locked(request.memory)
        limit_memory(request.memory)  # again: thread stacks count, though they stay empty
        _check_statement(connection, request.sql)
        lists_views = _SHOW_TABLES.fullmatch(request.sql)
        query = _VIEWS if lists_views else request.sql
        names = frozenset[str]() if lists_views else named_views(request.sql)
        states = _create_views(connection, Path(request.root), names)
        try:
            relation = connection.sql(query)
        except duckdb.CatalogException:  # it has a name that is not in its text, or a wrong one
            states += _create_views(connection, Path(request.root), set(VIEW_NAMES) - names)
            relation = connection.sql(query)
        reader = relation.to_arrow_reader(2048)
        num_left_out = _send(reader, request, started + request.seconds / 2)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        # An error between two batches of rows is an OSError with DuckDB's message.
        if any(words in str(error).lower() for words in _OUT_OF_MEMORY):
            raise MemoryError from error
        raise QueryRefusedError(f"DuckDB refused the query: {error}") from error
    return {
        "status": "ok",
        "is_cut": num_left_out != 0,
        "num_left_out": num_left_out,
        "seconds": time.perf_counter() - started,
        "doubts": doubts(states),
    }


def _open_locked(memory: int) -> duckdb.DuckDBPyConnection:
    pa.set_cpu_count(_THREADS)
    pa.set_io_thread_count(_THREADS)
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


def _send(reader: pa.RecordBatchReader, request: QueryRequest, count_until: float) -> int | None:
    """Send the first rows; return the number of further rows, or None if time runs out."""
    room, num_left_out, num_bytes = request.max_rows, 0, 0
    sys.stdout.buffer.write(ROWS)
    with pa.ipc.new_stream(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            kept = batch if room is None else batch.slice(0, room)
            num_left_out += batch.num_rows - kept.num_rows
            num_bytes += kept.nbytes
            if num_bytes > request.memory:
                raise MemoryError
            if kept.num_rows:
                _check_text(kept)
                writer.write_batch(kept)
            if room is not None:
                room -= kept.num_rows
            if num_left_out and time.perf_counter() > count_until:
                return None
    return num_left_out


def _check_text(batch: pa.RecordBatch) -> None:
    """Raise QueryRefusedError for text that is not UTF-8, which pyarrow reads without an error."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise QueryRefusedError(
            f"text must be UTF-8: {error}. `graphcredit check STORE` names the files that are wrong"
        ) from error
