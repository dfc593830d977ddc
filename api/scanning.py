"""The views of a store as Polars LazyFrames."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from graphcredit.store.errors import InputError, OptionError
from graphcredit.store.layout import AnyStore, Store, open_store, refuse_foreign_folders
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.schema import CREDIT_KEY_COLUMNS, PARTITION_COLUMNS, arrow_schema
from graphcredit.store.sql.catalog import connect
from graphcredit.store.sql.views import BASE_VIEWS, VIEW_NAMES, BaseView, identifier, view_files

_ON_FILES = {view.name: view for view in BASE_VIEWS}
_KEYS = [column.name for column in (*PARTITION_COLUMNS, *CREDIT_KEY_COLUMNS)]


def scan(
    store: AnyStore,
    view: str = "enriched",
    *,
    run_id: str | None = None,
    iteration: int | None = None,
) -> pl.LazyFrame:
    """Return a view of a store as a LazyFrame: steps, credit, enriched, groups, nodes, edges.

    A view of files (steps, credit, nodes, edges, state_scores, training, step_images) is scanned: a
    filter keeps Polars from reading other row groups, and one on run_id or iteration from opening
    other files.
    `enriched` joins steps and credit so. The other views (trajectories, groups, credit_state) are
    computed by DuckDB when the frame is collected, of the columns that are asked for.

    Example:
        lazy = graphcredit.scan("store").filter(pl.col("reach_advantage") < 0)
        lazy.select("state", "action").collect()

    Args:
        store: A store, or its path.
        view: Name of the view; docs/store.md has their columns.
        run_id: Only this run.
        iteration: Only this iteration, of a view that has iterations.

    Returns:
        The frame. Files are listed now and read when it is collected; collect it again if a file
        was replaced meanwhile.

    Raises:
        OptionError: There is no such view.
        SchemaError: A file cannot be read, or has a newer schema version.
    """
    opened = open_store(store)
    if view not in VIEW_NAMES:
        raise OptionError(f"no view is called {view!r}; there are {', '.join(VIEW_NAMES)}")
    if view in _ON_FILES:
        return _scan_files(opened, _ON_FILES[view], run_id, iteration)
    if view == "enriched":
        steps, credit = (
            _scan_files(opened, _ON_FILES[name], run_id, iteration) for name in ("steps", "credit")
        )
        return steps.join(credit, on=_KEYS, how="left", maintain_order="left")
    return _query(opened, view, run_id, iteration)


def _scan_files(
    store: Store, view: BaseView, run_id: str | None, iteration: int | None
) -> pl.LazyFrame:
    refuse_foreign_folders(store)
    root = store.root.resolve()
    alike: dict[str, tuple[pa.Schema, list[str]]] = {}
    for path in view_files(root, view):
        if _is_asked_for(path, view, run_id, iteration):
            with open_parquet(path, whole=False) as file:
                schema = file.schema_arrow.remove_metadata()
            alike.setdefault(schema.to_string(), (schema, []))[1].append(str(path))
    fields = [field for schema, _ in alike.values() for field in schema]
    wanted = _polars_schema(arrow_schema(view.all_columns(fields)))
    parts = [_scan_alike(root, view, paths, wanted) for _, paths in alike.values()]
    return pl.concat(parts) if parts else pl.LazyFrame(schema=wanted)


def _is_asked_for(path: Path, view: BaseView, run_id: str | None, iteration: int | None) -> bool:
    """Return whether a file is of a run and an iteration, however its folder is padded."""
    names = [column.name for column in view.partitions]
    folders = [folder.name for folder in reversed(list(path.parents)[: len(names)])]
    values = {name: folder.partition("=")[2] for name, folder in zip(names, folders, strict=True)}
    is_run = run_id in (None, values["run_id"])
    return is_run and (iteration is None or int(values.get("iteration", iteration)) == iteration)


def _scan_alike(root: Path, view: BaseView, paths: list[str], wanted: pl.Schema) -> pl.LazyFrame:
    """Scan files with the same columns; other columns of the view are null."""
    partitions = {column.name: wanted[column.name] for column in view.partitions}
    above = [part.partition("=")[0] for part in root.parts if "=" in part]
    if taken := sorted(partitions.keys() & above):
        raise InputError(
            f"no folder above a store may be called {taken[0]}=…, or Polars takes it for one of "
            f"the store: found {root}. Move the store, or use `graphcredit.store.connect`"
        )
    lazy = pl.scan_parquet(
        paths,
        glob=False,
        hive_partitioning=True,
        hive_schema={**dict.fromkeys(above, pl.String), **partitions},
    )
    schema = lazy.collect_schema()
    return lazy.select(_column(name, type_, schema.get(name)) for name, type_ in wanted.items())


def _column(name: str, wanted: pl.DataType, actual: pl.DataType | None) -> pl.Expr:
    if actual is None:
        return pl.lit(None, wanted).alias(name)
    # A cast would keep Polars from filtering in the file.
    return pl.col(name) if actual == wanted else pl.col(name).cast(wanted)


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
    return register_io_source(source, schema=_polars_schema(empty.schema))


def _polars_schema(schema: pa.Schema) -> pl.Schema:
    return pl.DataFrame(schema.empty_table()).schema
