"""SQL from people we do not know: the store's views and nothing else, within limits."""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from signal import SIGALRM
from typing import Any

import pyarrow as pa

from graphcredit.store.errors import OptionError, QueryRefusedError, SchemaError
from graphcredit.store.layout import Store, refuse_foreign_folders

MIB = 1 << 20
_STARTUP_SECONDS = 60.0
"""How long the child may take to start; its own clock runs from when it is ready."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryRequest:
    """What the child process is asked, as it goes through the pipe."""

    root: str
    """The store."""
    sql: str
    max_rows: int | None
    """Rows to return at most; None for all."""
    seconds: float
    """Time limit of the query, opening the files included."""
    memory: int
    """Bytes that DuckDB may use, and that the result may be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryResult:
    """The rows of a query."""

    table: pa.Table
    is_cut: bool
    """Whether the query has more rows than `table`."""
    num_left_out: int | None
    """How many more; None when counting them would have taken too long."""
    seconds: float
    """Time the query took."""


def run_query(
    store: Store,
    sql: str,
    *,
    max_rows: int | None = 10_000,
    seconds: float = 30.0,
    memory: int = 1024 * MIB,
) -> QueryResult:
    """Run one SELECT over the store's views in a process that can do nothing else.

    The process reads the store's shards and no other file, writes none, and is killed at the
    deadline, whatever it is doing.

    Args:
        store: The store.
        sql: One statement: SELECT, FROM, WITH … SELECT, PIVOT, DESCRIBE, SUMMARIZE, SHOW TABLES.
        max_rows: Rows to return at most; None for all that fit in memory.
        seconds: Time limit.
        memory: Bytes that the query and its result may use.

    Raises:
        QueryRefusedError: The statement is not allowed, fails, or exceeds a limit.
        SchemaError: A shard cannot be read.
        StoreFormatError: A shard is in a folder of no run or iteration.
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
    header, payload = _ask(request)
    if header["status"] == "unreadable":
        raise SchemaError(header["reason"])
    if header["status"] == "refused":
        raise QueryRefusedError(header["reason"])
    with pa.ipc.open_stream(payload) as reader:
        table = reader.read_all()
    return QueryResult(
        table=table,
        is_cut=header["is_cut"],
        num_left_out=header["num_left_out"],
        seconds=header["seconds"],
    )


def _check_limits(max_rows: int | None, seconds: float, memory: int) -> None:
    if max_rows is not None and max_rows < 1:
        raise OptionError(f"max_rows must be 1 or more, or None for all rows: got {max_rows}")
    if not 0 < seconds <= 86_400:
        raise OptionError(f"seconds must be above 0 and at most a day: got {seconds}")
    if memory < 64 * MIB:
        raise OptionError(f"memory must be at least 64 MiB: got {memory} bytes")


def _ask(request: QueryRequest) -> tuple[dict[str, Any], bytes]:
    """Return the child's answer: a line of JSON, then the table as an Arrow IPC stream."""
    # -P: the folder that the user stands in is no place to import from.
    command = [sys.executable, "-P", "-m", "graphcredit.store.sandbox_worker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            question = json.dumps(asdict(request)).encode()
            output, errors = process.communicate(question, request.seconds + _STARTUP_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise QueryRefusedError(_too_slow(request.seconds)) from error
        except BaseException:
            process.kill()
            raise
    line, newline, payload = output.partition(b"\n")
    if process.returncode == 0 and newline:
        return json.loads(line), payload
    raise QueryRefusedError(_ending(process.returncode, errors, request.seconds))


def _ending(returncode: int, errors: bytes, seconds: float) -> str:
    if returncode == -SIGALRM:
        return _too_slow(seconds)
    last = errors.decode(errors="replace").strip().rpartition("\n")[2]
    return (
        f"the query ended its process (status {returncode}{': ' + last if last else ''}), most "
        "likely out of memory: select fewer rows or columns, or allow more memory"
    )


def _too_slow(seconds: float) -> str:
    return (
        f"the query was stopped: it must finish within {seconds:g} s. Select fewer rows or "
        "columns, filter by run_id and iteration, or allow more time"
    )
