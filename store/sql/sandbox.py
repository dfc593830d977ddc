"""A sandbox for untrusted SQL: it sees the store's views and nothing else, within limits."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from signal import SIGALRM
from typing import IO, Any, TypeAlias

import pyarrow as pa

from graphcredit.store.errors import OptionError, QueryRefusedError, SchemaError
from graphcredit.store.layout import Store, refuse_foreign_folders
from graphcredit.store.parquet.snapshot import unchanged

MIB = 1 << 20
ROWS = b"\n"
"""First byte from the child if rows follow. Its answer, a JSON object, comes after the rows, or
alone if there are none."""

TOO_LARGE = 12
"""Exit status of a child that ran out of memory."""

_STARTUP_SECONDS = 60.0
"""Time limit for the child to start; the limit of the query begins when it has started."""

_LAST_BYTES = 1 << 16
"""Most bytes of the child's errors that are read, from the end."""

_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Environment of the child. pyarrow's default allocator reserves a gigabyte of address space, which
would count against the memory limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryRequest:
    """The request to the child process, sent as JSON through a pipe."""

    root: str
    """Path of the store."""
    sql: str
    max_rows: int | None
    """Most rows to return; None for all."""
    seconds: float
    """Time limit of the query, including the time to open the files."""
    memory: int
    """Most bytes that the query may use; also the limit of the result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryResult:
    """The rows of a query."""

    table: pa.Table
    is_cut: bool
    """Whether the query has more rows than `table`."""
    num_left_out: int | None
    """Number of further rows; None if counting them would have taken too long."""
    seconds: float
    """Duration of the query."""
    doubts: tuple[str, ...] = ()
    """Warnings for the reader, for example about stale credit (`provenance.freshness.doubts`)."""


def run_query(
    store: Store,
    sql: str,
    *,
    max_rows: int | None = 10_000,
    seconds: float = 30.0,
    memory: int = 1024 * MIB,
    keeps_ready: bool = False,
) -> QueryResult:
    """Run one SELECT over the store's views in a child process that can do nothing else.

    The process reads the store's shards and no other file, and writes none. It is killed at the
    deadline. The system limits its own memory to `memory` plus 144 MiB; shared pages of libraries
    do not count.

    Args:
        store: The store.
        sql: One statement: SELECT, FROM, WITH … SELECT, PIVOT, DESCRIBE, SUMMARIZE, SHOW TABLES.
        max_rows: Most rows to return; None for all that fit in memory.
        seconds: Time limit.
        memory: Most bytes that the query and its result may use.
        keeps_ready: Whether to start a process that waits for the next such query, and ends with
            this one. It too runs a single query.

    Raises:
        QueryRefusedError: The statement is not allowed, fails, or exceeds a limit.
        SchemaError: A shard cannot be read.
        StoreFormatError: A shard's folder is not that of a run and iteration.
    """
    _check_limits(max_rows, seconds, memory)
    refuse_foreign_folders(store)
    request = QueryRequest(
        root=str(store.root.resolve()),
        sql=sql,
        max_rows=max_rows,
        seconds=seconds,
        memory=memory,
    )
    answer, table = unchanged(store, lambda: _ask(request, keeps_ready=keeps_ready))
    if answer["status"] == "unreadable":
        raise SchemaError(answer["reason"])
    if answer["status"] == "refused":
        raise QueryRefusedError(answer["reason"])
    assert table is not None, "an answer without a table says why"
    return QueryResult(
        table=table,
        is_cut=answer["is_cut"],
        num_left_out=answer["num_left_out"],
        seconds=answer["seconds"],
        doubts=tuple(answer["doubts"]),
    )


def _check_limits(max_rows: int | None, seconds: float, memory: int) -> None:
    if max_rows is not None and max_rows < 1:
        raise OptionError(f"max_rows must be 1 or more, or None for all rows: got {max_rows}")
    if not 0 < seconds <= 86_400:
        raise OptionError(f"seconds must be above 0 and at most a day: got {seconds}")
    if memory < 64 * MIB:
        raise OptionError(f"memory must be at least 64 MiB: got {memory} bytes")


_Child: TypeAlias = "tuple[subprocess.Popen[bytes], IO[bytes]]"
"""A process that waits for a request, runs its query and exits; and the file of its errors."""

_ready: "list[_Child]" = []
"""The child that waits for the next query, if there is one."""


def _start() -> _Child:
    # A pipe for errors would fill up while the rows are read, and stop the child.
    errors = tempfile.TemporaryFile()  # noqa: SIM115  (whoever asks the child closes it)
    # -P: a module in the user's working directory must not shadow ours.
    command = [sys.executable, "-P", "-m", "graphcredit.store.sql.sandbox_start"]
    pipe, environment = subprocess.PIPE, os.environ | _ENVIRONMENT
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, env=environment)
    return process, errors


def _take_ready() -> _Child:
    """Return the child that waits, or a new one if there is none that lives."""
    with suppress(IndexError):
        process, errors = _ready.pop()
        if process.poll() is None:
            return process, errors
        with process, errors:
            pass  # its pipes and the file are closed
    return _start()


def _ask(request: QueryRequest, *, keeps_ready: bool) -> tuple[dict[str, Any], pa.Table | None]:
    """Return the child's answer, and the rows that it sent before it."""
    process, errors = _take_ready() if keeps_ready else _start()
    with errors, process:
        expired = threading.Event()
        clock = threading.Timer(request.seconds + _STARTUP_SECONDS, _stop, (process, expired))
        clock.start()
        try:
            table, answer = _converse(process, request)
        except BaseException:
            process.kill()
            raise
        finally:
            clock.cancel()
        process.wait()
        if keeps_ready and not _ready:
            with suppress(OSError):  # this query has its answer; the next one tries again
                _ready.append(_start())
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST_BYTES))
        last_errors = errors.read()
    if process.returncode == 0 and answer:
        return json.loads(answer), table
    if expired.is_set() or process.returncode == -SIGALRM:
        raise QueryRefusedError(
            f"the query was stopped: it must finish within {request.seconds:g} s. Select fewer "
            "rows or columns, filter by run_id and iteration, or allow more time"
        )
    raise QueryRefusedError(_ending(process.returncode, last_errors, request))


def _stop(process: "subprocess.Popen[bytes]", expired: threading.Event) -> None:
    expired.set()
    process.kill()


def _converse(
    process: "subprocess.Popen[bytes]", request: QueryRequest
) -> tuple[pa.Table | None, bytes]:
    """Send the request; return the rows and the answer, as far as the child got."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(asdict(request)).encode())
        process.stdin.close()
    first = process.stdout.read(1)
    if first != ROWS:
        return None, first + process.stdout.read()
    try:
        with pa.ipc.open_stream(process.stdout) as reader:
            table = reader.read_all()
    except (pa.ArrowException, OSError):
        return None, b""
    return table, process.stdout.read()


def _ending(returncode: int, errors: bytes, request: QueryRequest) -> str:
    limit = f"{request.memory // MIB} MiB of memory"
    last = errors.decode(errors="replace").strip().rpartition("\n")[2]
    status = f"status {returncode}{': ' + last if last else ''}"
    # A library whose allocation fails may abort or crash, instead of reporting it.
    happened = (
        f"needs more than {limit}"
        if returncode == TOO_LARGE
        else f"ended its process ({status}), most likely because it needs more than {limit}"
    )
    return (
        f"the query {happened}: select fewer rows or columns, filter by run_id and iteration, or "
        "allow more"
    )
