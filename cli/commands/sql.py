"""`graphcredit sql`: query the views of a store, once or at a prompt."""

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console

from graphcredit.cli.options import StorePath
from graphcredit.cli.output.console import out, tell
from graphcredit.cli.output.escape import Plain
from graphcredit.cli.output.tables import print_table, write_csv, write_json
from graphcredit.store.errors import GraphcreditError, OptionError
from graphcredit.store.files.output import output_path
from graphcredit.store.layout import Store, open_store
from graphcredit.store.plural import counted
from graphcredit.store.sql.sandbox import MIB, QueryResult, run_query

_TABLE_ROWS = 100


class ResultFormat(StrEnum):
    """How results are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def sql(
    store: StorePath,
    query: Annotated[
        str | None,
        typer.Argument(help="One SELECT statement. Without one: a prompt.", show_default=False),
    ] = None,
    format_: Annotated[
        ResultFormat, typer.Option("--format", help="How to write the rows.")
    ] = ResultFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option(help="Write to this file, link or pipe instead of stdout.")
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help="On a terminal, show every column and value, a block for each row."
        ),
    ] = False,
    limit_rows: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"Most rows to write, 0 for all. Default: {_TABLE_ROWS} in a table, else all.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Time limit of the query in seconds.")] = 60.0,
    memory: Annotated[
        int,
        typer.Option(help="MiB that the query and its result may use; its process gets 256 more."),
    ] = 1024,
    unlocked: Annotated[
        bool,
        typer.Option(
            "--unlocked", help="Run any SQL, on any file that you can access, without limits."
        ),
    ] = False,
) -> None:
    """Query a store's views with SQL.

    The views are steps, credit, enriched (both joined), trajectories, groups, nodes, edges,
    state_scores, training and credit_state (is the credit up to date?). The query reads only
    these views, writes no file, and is stopped at its limits.

    Example: graphcredit sql STORE "SELECT task_id, success_rate FROM groups ORDER BY 2"

    Without a query: a prompt with history, or the statement that is piped in.
    """
    if format_ is ResultFormat.PARQUET and output is None:
        raise OptionError("--format parquet is not text: name a file with --output FILE")
    default = _TABLE_ROWS if format_ is ResultFormat.TABLE else 0
    session = _Session(
        store=open_store(store),
        format=format_,
        output=output,
        is_whole=whole,
        max_rows=(default if limit_rows is None else limit_rows) or None,
        seconds=timeout,
        mebibytes=memory,
        is_unlocked=unlocked,
    )
    if query is None and sys.stdin.isatty():
        _converse(session)
    else:
        session.answer(sys.stdin.read() if query is None else query)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Session:
    """A store, and how its queries are run and answered."""

    store: Store
    format: ResultFormat
    output: Path | None
    is_whole: bool
    max_rows: int | None
    seconds: float
    mebibytes: int
    is_unlocked: bool

    def answer(self, query: str) -> None:
        """Run a query, write its rows, and say on stderr what to know about them."""
        with nullcontext() if self.output is None else output_path(self.output) as path:
            result = self.run(query)
            notices = list(_write(result.table, self.format, path, is_whole=self.is_whole))
        _tell([*(f"notice: {doubt}" for doubt in result.doubts), *notices, *_left_out(result)])

    def run(self, query: str) -> QueryResult:
        """Return the rows of a query."""
        if self.is_unlocked:
            from graphcredit.store.sql.catalog import run_trusted_query

            return run_trusted_query(self.store, query, max_rows=self.max_rows)
        return run_query(
            self.store,
            query,
            max_rows=self.max_rows,
            seconds=self.seconds,
            memory=self.mebibytes * MIB,
        )


def _converse(session: _Session) -> None:
    """Answer statements until the user leaves; an error ends none but its own."""
    from graphcredit.cli.prompt import open_history, read_statements, save_history

    open_history(_names(session))
    _tell(["SHOW TABLES lists the views. A statement ends with a semicolon, the prompt with exit."])
    for statement in read_statements():
        try:
            session.answer(statement)
        except GraphcreditError as error:
            _tell(f"graphcredit: {error}".split("\n"))
        except KeyboardInterrupt:
            _tell(["interrupted"])
    try:
        save_history()
    except OSError as error:
        _tell([f"notice: the history could not be saved: {error}"])


def _names(session: _Session) -> list[str]:
    """Return the names of the views and of their columns, for completion."""
    query = "SELECT table_name, column_name FROM information_schema.columns"
    rows = run_query(session.store, query).table.to_pylist()
    return sorted({name for row in rows for name in row.values()})


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        tell(line)


def _left_out(result: QueryResult) -> list[str]:
    if not result.is_cut:
        return []
    more = "more" if result.num_left_out is None else f"{result.num_left_out:,} more"
    shown = counted(result.table.num_rows, "row")
    return [f"{shown} shown, {more} left out: --limit-rows N shows N rows, 0 shows all"]


def _write(
    table: pa.Table, format_: ResultFormat, path: Path | None, *, is_whole: bool
) -> list[str]:
    """Write rows; return what to know about them."""
    writers = {ResultFormat.CSV: write_csv, ResultFormat.JSON: write_json}
    if path is not None and format_ is ResultFormat.PARQUET:
        from graphcredit.store.files.tables import write_table_unsynced
        from graphcredit.store.sql.values import for_parquet

        table, as_text = for_parquet(table)
        write_table_unsynced(table, path)
        return [f"notice: Parquet has no type for {name!r}: written as text" for name in as_text]
    if path is not None:
        with path.open("w", encoding="utf-8") as stream:
            if format_ is ResultFormat.TABLE:
                print_table(Console(file=stream), table)
            else:
                writers[format_](table, stream)
        return []
    if format_ is ResultFormat.TABLE:
        return print_table(out, table, is_whole=is_whole)
    writers[format_](table, Plain(sys.stdout) if out.is_terminal else sys.stdout)
    return []
