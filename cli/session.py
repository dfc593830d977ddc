"""An answer of `graphcredit sql`: runs a query, and writes its rows."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from graphcredit.cli.output.console import tell
from graphcredit.cli.output.tables import Plain, print_table, write_csv, write_json
from graphcredit.store.confined.limits import MIB
from graphcredit.store.files.output import output_path
from graphcredit.store.layout import Store
from graphcredit.store.plural import counted
from graphcredit.store.sql.result import QueryResult
from graphcredit.store.sql.sandbox import run_query
from graphcredit.store.sql.without_numpy import without_numpy

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
        for line in (
            *(f"notice: {doubt}" for doubt in result.doubts),
            *notices,
            *_left_out(result),
        ):
            tell(line)

    def run(self, query: str) -> QueryResult:
        """Return the rows of a query."""
        if self.is_unlocked:
            from graphcredit.store.sql.catalog import run_trusted_query

            return run_trusted_query(self.store, query, max_rows=self.max_rows)
        with without_numpy():
            return run_query(
                self.store,
                query,
                max_rows=self.max_rows,
                seconds=self.seconds,
                memory=self.mebibytes * MIB,
            )


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
