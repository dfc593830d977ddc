"""The child process that runs one query of `sandbox.py` and ends.

DuckDB here has no file system at all: the shards are opened by pyarrow and registered as data
sets. Allowing it the store's own files would not do, since a statement that parses as a SELECT can
hold a COPY that overwrites an allowed file.
"""

import json
import resource
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from graphcredit.store.errors import QueryRefusedError, SchemaError
from graphcredit.store.sandbox import MIB, QueryRequest
from graphcredit.store.schema import arrow_schema
from graphcredit.store.shards import open_parquet
from graphcredit.store.views import BASE_VIEWS, DERIVED_VIEWS, BaseView, base_view_sql

_ADDRESS_SPACE = 8 << 30
"""What the process may map beyond DuckDB's own limit; most of it is reserved and never touched."""

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
_KINDS = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
"""SELECT covers FROM, DESCRIBE, SHOW and SUMMARIZE; MULTI is PIVOT."""


def main() -> None:
    """Read a request from stdin, answer on stdout."""
    request = QueryRequest(**json.loads(sys.stdin.buffer.read()))
    limit_process(request)
    try:
        header, payload = answer(request)
    except SchemaError as error:
        header, payload = {"status": "unreadable", "reason": str(error)}, b""
    except QueryRefusedError as error:
        header, payload = {"status": "refused", "reason": str(error)}, b""
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n")
    sys.stdout.buffer.write(payload)


def limit_process(request: QueryRequest) -> None:
    """Let the system end this process at the deadline, and forbid it to write any file.

    The alarm's default action kills, which needs no cooperation from the code that is running.
    """
    space = _ADDRESS_SPACE + 2 * request.memory
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request.seconds)


def answer(request: QueryRequest) -> tuple[dict[str, Any], bytes | memoryview]:
    """Run the query.

    Raises:
        QueryRefusedError: It is not allowed, fails, or needs too much memory.
        SchemaError: A shard cannot be read.
    """
    started = time.perf_counter()
    try:
        connection = _open_locked(Path(request.root), request.memory)
        _check_statement(connection, request.sql)
        reader = connection.sql(request.sql).to_arrow_reader(2048)
        table, num_left_out = _fetch(reader, request, started + request.seconds / 2)
    except (duckdb.OutOfMemoryException, MemoryError, pa.ArrowMemoryError) as error:
        raise QueryRefusedError(
            f"the query needs more than {request.memory // MIB} MiB of memory: select fewer rows "
            "or columns, or allow more"
        ) from error
    except (duckdb.Error, pa.ArrowException) as error:
        raise QueryRefusedError(f"DuckDB refused the query: {error}") from error
    header = {
        "status": "ok",
        "is_cut": num_left_out != 0,
        "num_left_out": num_left_out,
        "seconds": time.perf_counter() - started,
    }
    return header, _ipc(table)


def _open_locked(root: Path, memory: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:", config={"memory_limit": f"{memory // MIB}MiB", "threads": 2}
    )
    connection.execute("SET TimeZone='UTC'")
    # Before anything else: the names of columns are from files that anyone may have written.
    for lock in _LOCKS:
        connection.execute(lock)
    for view in BASE_VIEWS:
        found, sources = _register(connection, root, view)
        sql = base_view_sql(view.all_columns(found), sources)
        connection.execute(f"CREATE TEMP VIEW {view.name} AS {sql}")
    for name, sql in DERIVED_VIEWS.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {sql}")
    return connection


def _register(
    connection: duckdb.DuckDBPyConnection, root: Path, view: BaseView
) -> tuple[list[pa.Field], list[str]]:
    """Register a view's files, one data set per layout of columns; return columns and names."""
    partitions = arrow_schema(view.partitions).remove_metadata()
    layouts: defaultdict[pa.Schema, list[str]] = defaultdict(list)
    for path in sorted(root.glob(view.pattern)):
        with open_parquet(path) as file:
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
        connection.register(sources[-1], dataset)
    return [field for schema in layouts for field in schema], sources


def _as_text(field: pa.Field) -> pa.Field:
    """Return a field whose bytes are text: some writers do not say which it is."""
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
            "statement, on files that are your own"
        )


def _fetch(
    reader: pa.RecordBatchReader, request: QueryRequest, count_until: float
) -> tuple[pa.Table, int | None]:
    """Return the first rows, and how many more there are, counted only as long as time allows."""
    batches: list[pa.RecordBatch] = []
    room, num_left_out, num_bytes = request.max_rows, 0, 0
    for batch in reader:
        kept = batch if room is None else batch.slice(0, room)
        num_left_out += batch.num_rows - kept.num_rows
        if kept.num_rows:
            batches.append(kept)
            num_bytes += kept.nbytes
        if room is not None:
            room -= kept.num_rows
        if num_bytes > request.memory:
            raise MemoryError
        if num_left_out and time.perf_counter() > count_until:
            return pa.Table.from_batches(batches, schema=reader.schema), None
    return pa.Table.from_batches(batches, schema=reader.schema), num_left_out


def _ipc(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


if __name__ == "__main__":
    main()
