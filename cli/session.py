"""A session of `graphcredit sql`: runs queries, writes their rows, and holds the prompt."""

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from graphcredit.cli.output.console import tell
from graphcredit.cli.output.tables import Plain, print_table, write_csv, write_json
from graphcredit.store.confined.limits import MIB
from graphcredit.store.errors import GraphcreditError
from graphcredit.store.files.output import output_path
from graphcredit.store.layout import Store
from graphcredit.store.plural import counted
from graphcredit.store.sql.sandbox import QueryResult, run_query

_TEXTS = {"csv": write_csv, "json": write_json}


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A store, and how its queries are run and answered."""

    store: Store
    format_: str
    """Of the rows: table, csv, json or parquet; the last one needs an `output`."""
    output: Path | None
    max_rows: int | None
    seconds: float
    mebibytes: int
    is_unlocked: bool

    def answer(self, query: str) -> None:
        """Run a query, write its rows, and say on stderr what to know about them."""
        with nullcontext() if self.output is None else output_path(self.output) as path:
            result = self.run(query)
            notices = list(_write(result.table, self.format_, path))
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


def converse(session: Session) -> None:
    """Answer statements until the user leaves; an error ends none but its own."""
    from graphcredit.cli.prompt import open_history, read_statements, save_history

    open_history()
    _tell(["SHOW TABLES lists the views. A statement ends with a semicolon, the prompt with exit."])
    for statement in read_statements():
        try:
            session.answer(statement)
        except GraphcreditError as error:
            _tell(f"graphcredit: {error}".replace("\n", "\n  ").split("\n"))
        except KeyboardInterrupt:
            _tell(["interrupted"])
    try:
        save_history()
    except OSError as error:
        _tell([f"notice: the history could not be saved: {error}"])


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        tell(line)


def _left_out(result: QueryResult) -> list[str]:
    if not result.is_cut:
        return []
    more = "more" if result.num_left_out is None else f"{result.num_left_out:,} more"
    shown = counted(result.table.num_rows, "row")
    return [f"{shown} shown, {more} left out: --limit-rows N shows N rows, 0 shows all"]


def _write(table: pa.Table, format_: str, path: Path | None) -> list[str]:
    """Write rows; return what to know about them."""
    if path is not None and format_ == "parquet":
        from graphcredit.store.files.tables import write_table_unsynced
        from graphcredit.store.sql.values import for_parquet

        table, as_text = for_parquet(table)
        write_table_unsynced(table, path)
        return [f"notice: Parquet has no type for {name!r}: written as text" for name in as_text]
    if path is not None:
        with path.open("w", encoding="utf-8") as stream:
            if format_ == "table":
                print_table(stream, table)
            else:
                _TEXTS[format_](table, stream)
        return []
    if format_ == "table":
        return print_table(sys.stdout, table)
    _TEXTS[format_](table, Plain(sys.stdout) if sys.stdout.isatty() else sys.stdout)
    return []
