"""A sandbox for untrusted SQL: it sees the store's views and nothing else, within limits."""

import json
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from graphcredit.store.confined.limits import MIB
from graphcredit.store.confined.process import ConfinedProcess
from graphcredit.store.errors import OptionError, QueryRefusedError, SchemaError
from graphcredit.store.layout import Store, refuse_foreign_folders
from graphcredit.store.parquet.snapshot import unchanged

ROWS = b"\n"
"""First byte from the child if rows follow. Its answer, a JSON object, comes after the rows, or
alone if there are none."""

_STARTUP_SECONDS = 60.0
"""Time limit for the child to start; the limit of the query begins when it has started."""


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
        root=str(store.root.resolve()), sql=sql, max_rows=max_rows, seconds=seconds, memory=memory
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


_ready: list[ConfinedProcess] = []
"""The child that waits for the next query, if there is one."""


def _start() -> ConfinedProcess:
    return ConfinedProcess("graphcredit.store.sql.sandbox_start")


def _take_ready() -> ConfinedProcess:
    """Return the child that waits, or a new one if there is none that lives."""
    with suppress(IndexError):
        process = _ready.pop()
        if process.lives:
            return process
        with process:
            pass  # its pipes and the file of its errors are closed
    return _start()


def _ask(request: QueryRequest, *, keeps_ready: bool) -> tuple[dict[str, Any], pa.Table | None]:
    """Return the child's answer, and the rows that it sent before it."""
    with _take_ready() if keeps_ready else _start() as process:
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
        code = process.wait()
        if keeps_ready and not _ready:
            with suppress(OSError):  # this query has its answer; the next one tries again
                _ready.append(_start())
        if code == 0 and answer:
            return json.loads(answer), table
        reason = process.why_ended(request.seconds, request.memory)
    if expired.is_set():
        reason = f"was stopped: it must finish within {request.seconds:g} s"
    raise QueryRefusedError(
        f"the query {reason}. Select fewer rows or columns, filter by run_id and iteration, or "
        "allow more"
    )


def _stop(process: ConfinedProcess, expired: threading.Event) -> None:
    expired.set()
    process.kill()


def _converse(process: ConfinedProcess, request: QueryRequest) -> tuple[pa.Table | None, bytes]:
    """Send the request; return the rows and the answer, as far as the child got."""
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
