"""`graphcredit sql`: run one query over the views of a store."""

import sys
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphcredit.store.errors import OptionError
from graphcredit.store.plural import counted

if TYPE_CHECKING:
    import pyarrow as pa

_TABLE_ROWS = 100


class ResultFormat(StrEnum):
    """How results are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def sql(
    store: Annotated[Path, typer.Argument(help="The store.", show_default=False)],
    query: Annotated[str, typer.Argument(help="One SELECT statement.", show_default=False)],
    format_: Annotated[
        ResultFormat, typer.Option("--format", help="How to write the rows.")
    ] = ResultFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option(help="Write to this file, link or pipe instead of stdout.")
    ] = None,
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
    """
    from graphcredit.cli.output.console import PLAIN, talk
    from graphcredit.cli.output.escape import plain_text
    from graphcredit.store.files.output import output_path
    from graphcredit.store.layout import open_store
    from graphcredit.store.sql.catalog import run_trusted_query
    from graphcredit.store.sql.sandbox import MIB, run_query

    if format_ is ResultFormat.PARQUET and output is None:
        raise OptionError("--format parquet is not text: name a file with --output FILE")
    default = _TABLE_ROWS if format_ is ResultFormat.TABLE else 0
    max_rows = (default if limit_rows is None else limit_rows) or None
    opened = open_store(store)
    with nullcontext() if output is None else output_path(output) as path:
        if unlocked:
            result = run_trusted_query(opened, query, max_rows=max_rows)
        else:
            result = run_query(
                opened, query, max_rows=max_rows, seconds=timeout, memory=memory * MIB
            )
        _write(result.table, format_, path)
    for doubt in result.doubts:
        talk.print(f"notice: {plain_text(doubt)}", **PLAIN)
    if result.is_cut:
        more = "more" if result.num_left_out is None else f"{result.num_left_out:,} more"
        talk.print(
            f"{counted(result.table.num_rows, 'row')} shown, {more} left out: --limit-rows N shows "
            "N rows, 0 shows all",
            highlight=False,
            soft_wrap=True,
        )


def _write(table: "pa.Table", format_: ResultFormat, path: Path | None) -> None:
    from rich.console import Console

    from graphcredit.cli.output.console import PLAIN, out, talk
    from graphcredit.cli.output.escape import Plain, plain_text
    from graphcredit.cli.output.tables import print_table, write_csv, write_json
    from graphcredit.store.files.atomic import write_table_unsynced
    from graphcredit.store.sql.values import for_parquet

    writers = {ResultFormat.CSV: write_csv, ResultFormat.JSON: write_json}
    if path is not None and format_ is ResultFormat.PARQUET:
        table, as_text = for_parquet(table)
        write_table_unsynced(table, path)
        for name in as_text:
            talk.print(
                f"notice: Parquet has no type for {plain_text(name)!r}: written as text", **PLAIN
            )
    elif path is not None:
        with path.open("w", encoding="utf-8") as stream:
            if format_ is ResultFormat.TABLE:
                print_table(Console(file=stream), table)
            else:
                writers[format_](table, stream)
    elif format_ is ResultFormat.TABLE:
        print_table(out, table)
    else:
        writers[format_](table, Plain(sys.stdout) if out.is_terminal else sys.stdout)
