"""The views of a store as Polars LazyFrames."""

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from graphcredit.store.errors import OptionError
from graphcredit.store.layout import AnyStore, Store, open_store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.sql.catalog import connect
from graphcredit.store.sql.views import VIEW_NAMES, identifier


def scan(
    store: AnyStore,
    view: str = "enriched",
    *,
    run_id: str | None = None,
    iteration: int | None = None,
) -> pl.LazyFrame:
    """Return a view of a store as a LazyFrame: steps, credit, enriched, groups, nodes, edges.

    DuckDB reads the columns that are asked for when the frame is collected.

    Example:
        lazy = graphcredit.scan("store").filter(pl.col("reach_advantage") < 0)
        lazy.select("state", "action").collect()

    Args:
        store: A store, or its path.
        view: Name of the view; docs/store.md has their columns.
        run_id: Only this run.
        iteration: Only this iteration, of a view that has iterations.

    Returns:
        The frame.

    Raises:
        OptionError: There is no such view.
        SchemaError: A file cannot be read, or has a newer schema version.
    """
    opened = open_store(store)
    if view not in VIEW_NAMES:
        raise OptionError(f"no view is called {view!r}; there are {', '.join(VIEW_NAMES)}")
    return _query(opened, view, run_id, iteration)


def _query(store: Store, view: str, run_id: str | None, iteration: int | None) -> pl.LazyFrame:
    """Return a LazyFrame that asks DuckDB when it is collected."""

    def read(columns: str) -> pa.Table:
        with connect(store, run_id=run_id, iteration=iteration, sql=view) as connection:
            return connection.sql(f"SELECT {columns} FROM {view}").to_arrow_table()

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        names = "*" if with_columns is None else ", ".join(map(identifier, with_columns))
        table = unchanged(store, lambda: read(names), run_id=run_id, iteration=iteration)
        frame = pl.DataFrame(table)
        if predicate is not None:
            frame = frame.filter(predicate)
        yield frame if n_rows is None else frame.head(n_rows)

    with connect(store, run_id=run_id, iteration=iteration, sql=view) as connection:
        empty = connection.sql(f"FROM {view} LIMIT 0").to_arrow_table()
    return register_io_source(source, schema=pl.DataFrame(empty).schema)
