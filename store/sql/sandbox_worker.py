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

from graphcredit.store.credit_marks.state import CreditState, credit_states, doubts, state_table
from graphcredit.store.errors import QueryRefusedError, SchemaError, StoreFormatError
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import arrow_schema
from graphcredit.store.sql.sandbox import MIB, ROWS, TOO_LARGE, QueryRequest
from graphcredit.store.sql.views import (
    BASE_VIEWS,
    CREDIT_STATE,
    DERIVED_VIEWS,
    BaseView,
    base_view_sql,
    view_files,
)

_OVERHEAD = 144 * MIB
"""What the process may take beside the limit of the query: Python's objects, a batch of rows."""

_OUT_OF_MEMORY = ("out of memory", "memory allocation failed", "bad_alloc")
"""How DuckDB and its libraries say it, in small letters."""

_THREADS = 2
"""Of DuckDB and of pyarrow each; more of them hold more at a time."""

_FRUGALLY: dict[str, Any] = {
    "batch_size": 2048,
    "batch_readahead": 0,
    "fragment_readahead": 1,
    "fragment_scan_options": ds.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=MIB, pre_buffer=False
    ),
}
"""How shards are read."""

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
    """Read a request from stdin; on stdout, write the rows and then what there is to say of them.

    Exit with `TOO_LARGE` where memory does not suffice.
    """
    request = QueryRequest(**json.loads(sys.stdin.buffer.read()))
    limit_process(request)
    try:
        answer = _run(request)
    except (SchemaError, StoreFormatError) as error:
        answer = {"status": "unreadable", "reason": str(error)}
    except QueryRefusedError as error:
        answer = {"status": "refused", "reason": str(error)}
    except MemoryError:
        raise SystemExit(TOO_LARGE) from None
    sys.stdout.buffer.write(json.dumps(answer).encode())


def limit_process(request: QueryRequest) -> None:
    """Let the system end this process at the deadline, and keep it from memory and files.

    The alarm's default action kills, which needs no cooperation from the code that is running.
    """
    limit_memory(request.memory)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request.seconds)


def limit_memory(memory: int) -> None:
    """Keep this process's own memory below a limit and `_OVERHEAD`.

    DuckDB does not count its lists, strings, aggregates and results. The system counts every page
    that may be written, touched or not, and gives no more of them than what is free now. Pages of
    libraries do not count: how many are resident is the system's choice, and it can drop them.
    """
    sizes = _memory_sizes()
    free = memory + _OVERHEAD - sizes["RssAnon"]
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (sizes["VmData"] + max(free, 0), most))


def _memory_sizes() -> dict[str, int]:
    """Return the sizes of this process in bytes, as the system names them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {
        name: int(value.removesuffix(" kB")) << 10
        for name, _, value in (line.partition(":") for line in lines)
        if value.endswith(" kB")
    }


def _run(request: QueryRequest) -> dict[str, Any]:
    """Run the query, writing its rows to stdout.

    Raises:
        QueryRefusedError: It is not allowed, or fails.
        SchemaError: A shard cannot be read.
        MemoryError: It needs too much memory.
    """
    started = time.perf_counter()
    try:
        states = credit_states(Store(Path(request.root)))
        connection = _open_locked(Path(request.root), request.memory, states)
        limit_memory(request.memory)  # again: the stacks of threads are counted, but stay empty
        _check_statement(connection, request.sql)
        reader = connection.sql(request.sql).to_arrow_reader(2048)
        num_left_out = _send(reader, request, started + request.seconds / 2)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        # An error amid the rows is an OSError with DuckDB's words.
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


def _open_locked(root: Path, memory: int, states: list[CreditState]) -> duckdb.DuckDBPyConnection:
    pa.set_cpu_count(_THREADS)
    pa.set_io_thread_count(_THREADS)
    connection = duckdb.connect(
        ":memory:", config={"memory_limit": f"{memory // MIB}MiB", "threads": _THREADS}
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
    connection.register(CREDIT_STATE, state_table(states))
    return connection


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
    """A data set whose scans hold about one row group, where pyarrow's would hold dozens."""

    @classmethod
    def of(cls, dataset: ds.FileSystemDataset) -> "_Frugal":
        """Return a data set of the same files."""
        fragments = list(dataset.get_fragments())
        return cls(fragments, dataset.schema, dataset.format, dataset.filesystem)

    def scanner(self, **options: Any) -> ds.Scanner:
        """Return a scanner of the rows; DuckDB asks for one whenever it reads."""
        return super().scanner(**_FRUGALLY, **options)


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


def _send(reader: pa.RecordBatchReader, request: QueryRequest, count_until: float) -> int | None:
    """Send the first rows; return how many more there are, counted as long as time allows."""
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
    """Raise QueryRefusedError for text that is not UTF-8, which pyarrow reads from any file."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise QueryRefusedError(
            f"text must be UTF-8: {error}. `graphcredit check STORE` names the files of other text"
        ) from error


if __name__ == "__main__":
    main()
