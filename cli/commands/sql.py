"""`graphcredit sql`: query the views of a store."""

import sys
from pathlib import Path
from typing import Annotated

from graphcredit.cli.options import StorePath
from graphcredit.cli.parameters import Argument, Option
from graphcredit.store.errors import OptionError
from graphcredit.store.layout import open_store
from graphcredit.store.near_names import must_be_one_of
from graphcredit.store.sql.without_numpy import without_numpy

_TABLE_ROWS = 100
_FORMATS = ("table", "csv", "json", "parquet")


def sql(
    store: StorePath,
    query: Annotated[
        str | None, Argument(help="One SELECT statement. Without one: what is piped in.")
    ] = None,
    format_: Annotated[
        str, Option("--format", help="How to write the rows: table, csv, json or parquet.")
    ] = "table",
    output: Annotated[
        Path | None, Option(help="Write to this file, link or pipe instead of stdout.")
    ] = None,
    limit_rows: Annotated[
        int | None,
        Option(
            min=0,
            help=f"Most rows to write, 0 for all. Default: {_TABLE_ROWS} in a table, else all.",
        ),
    ] = None,
    timeout: Annotated[float, Option(help="Time limit of the query in seconds.")] = 60.0,
    memory: Annotated[int, Option(help="MiB that the query and its result may use.")] = 1024,
    unlocked: Annotated[
        bool,
        Option("--unlocked", help="Run any SQL, on any file that you can access, without limits."),
    ] = False,
) -> None:
    """Query a store's views with SQL.

    The views are steps, credit, enriched (both joined), trajectories, groups, nodes, edges,
    state_scores, training and credit_state (is the credit up to date?). The query reads only
    these views, writes no file, and is stopped at its limits.

    Example: graphcredit sql STORE "SELECT task_id, success_rate FROM groups ORDER BY 2"

    Without a query, the statement that is piped in is run.
    """
    if query is None and sys.stdin.isatty():
        raise OptionError('a query must be given: graphcredit sql STORE "SHOW TABLES" lists views')
    if format_ not in _FORMATS:
        raise OptionError(must_be_one_of("--format", _FORMATS, format_))
    if format_ == "parquet" and output is None:
        raise OptionError("--format parquet is not text: name a file with --output FILE")
    with without_numpy():
        from graphcredit.cli.session import Session

    default = _TABLE_ROWS if format_ == "table" else 0
    session = Session(
        store=open_store(store),
        format_=format_,
        output=output,
        max_rows=(default if limit_rows is None else limit_rows) or None,
        seconds=timeout,
        mebibytes=memory,
        is_unlocked=unlocked,
    )
    session.answer(sys.stdin.read() if query is None else query)
