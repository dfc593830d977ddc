"""Export steps with their credit as plain Parquet files, for tools that do not know the store."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.csv import CSVWriter

from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import atomic_directory, atomic_path
from graphcredit.store.files.tables import parquet_writer
from graphcredit.store.layout import AnyStore, Shard, open_store
from graphcredit.store.parquet.enriched import enriched_tables, estimator_columns
from graphcredit.store.parquet.shards import with_partition
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.schema import CREDIT_COLUMNS, CREDIT_KEY_COLUMNS, STEP_COLUMNS, Column
from graphcredit.store.text_table import Report


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ExportReport(Report):
    """The numbers of files and steps that were written."""

    num_files: int
    """Number of files, one for each step shard."""
    num_steps: int
    """Number of rows of all files."""
    num_without_credit: int
    """Number of rows without credit: of incomplete trajectories, or not credited yet."""

    def headline(self) -> str:
        """Return how much was written."""
        return (
            f"{counted(self.num_steps, 'step')} in {counted(self.num_files, 'file')}; "
            f"{counted(self.num_without_credit, 'step')} without credit"
        )


def export_store(
    store: AnyStore,
    target: Path | str,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    estimator: str | None = None,
    on_progress: OnProgress = silent,
) -> ExportReport:
    """Write each step shard and its credit shard as one file, with run and iteration as columns.

    A target that ends in .csv or .parquet is one file of all steps; in a CSV, a list is JSON and
    null an empty field. The directory, or the file, appears when it is complete. Until then it has
    a temporary name; the next export to the same directory removes one that a killed export left
    behind. All files have the same columns: those of `steps` and `credit`, and those of every
    estimator in any shard.

    Args:
        store: A store, or its path.
        target: A new directory, or one that is empty; a link to one is followed. Or a new file that
            ends in .csv or .parquet.
        run_id: Only this run.
        iteration: Only this iteration.
        estimator: Only this estimator's columns.
        on_progress: Called with the number of files written and their total.

    Raises:
        InputError: There are no steps, or no credit by that estimator, or `target` has content.
        SchemaError: A shard cannot be read, or the rows of a credit shard are not its step shard's.
    """
    store = open_store(store)
    shards = store.shards(run_id, iteration)
    if not shards:
        raise InputError(
            f"{store.root} must have step shards of that run and iteration: found none"
        )
    target = Path(target)
    is_file = target.suffix in (".csv", ".parquet")
    if is_file and os.path.lexists(target):
        raise InputError(f"{target} must be a new file: it is there. Name another, or remove it")
    target = target if is_file else _free_directory(target)
    columns = estimator_columns(shards, estimator)
    judged = _counted(columns, estimator)
    num_steps = num_without = num_done = 0
    with (
        atomic_path(target) if is_file else atomic_directory(target, may_replace=False) as temporary
    ):
        one, each = {temporary: shards}, zip(_names(shards), shards, strict=True)
        parts = one if is_file else {temporary / name: [shard] for name, shard in each}
        for path, members in parts.items():
            for table in _write(members, columns, path, is_csv=target.suffix == ".csv"):
                num_steps += table.num_rows
                num_without += table[judged].null_count
            num_done += len(members)
            on_progress("export", num_done, len(shards))
    return ExportReport(num_files=len(parts), num_steps=num_steps, num_without_credit=num_without)


def _flat(table: pa.Table) -> pa.Table:
    """Return the table with its lists as JSON, which a CSV can hold."""
    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            values = table.column(place).to_pylist()
            encoder = json.JSONEncoder(
                ensure_ascii=False, default=lambda content: f"<{len(content)} bytes>"
            )
            texts = [None if value is None else encoder.encode(value) for value in values]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def _counted(columns: tuple[Column, ...], estimator: str | None) -> str:
    """Return the column whose nulls are steps without credit."""
    advantage = f"{estimator}_advantage"
    return advantage if advantage in {column.name for column in columns} else "state_id"


def _free_directory(target: Path) -> Path:
    """Return the directory behind a path, which may be a link.

    Raises:
        InputError: It is not a directory, or has content.
    """
    behind = Path(os.path.realpath(target))
    if not os.path.lexists(behind):
        return behind
    if not behind.is_dir():
        raise InputError(f"{target} must be a new directory, or an empty one: it is no directory")
    content = sorted(path.name for path in behind.iterdir())
    if content:
        raise InputError(
            f"{target} must be a new directory, or an empty one: it holds {content[0]!r}. Name "
            "another, or remove it"
        )
    return behind


def _names(shards: list[Shard]) -> list[str]:
    """Return a unique file name for each shard.

    Two shards may ask for the same name: `iteration=0` and `iteration=000000` are one iteration,
    and the names of runs and shards may contain the hyphens that join the parts.
    """
    names: dict[str, None] = {}
    for shard in shards:
        stem = f"{shard.run_id}-{shard.iteration:06d}-{shard.path.stem}"
        wanted = chain([stem], (f"{stem}-{number}" for number in count(2)))
        names[next(f"{name}.parquet" for name in wanted if f"{name}.parquet" not in names)] = None
    return list(names)


def _write(
    shards: list[Shard], columns: tuple[Column, ...], path: Path, *, is_csv: bool
) -> Iterator[pa.Table]:
    """Write the steps of some shards to one file, a row group at a time, and yield each."""
    with ExitStack() as closing:
        writer: Any = None
        for shard in shards:
            for table in _tables(shard, columns):
                rows = _flat(table) if is_csv else table
                writer = writer or closing.enter_context(
                    CSVWriter(path, rows.schema) if is_csv else parquet_writer(path, rows.schema)
                )
                writer.write_table(rows)
                yield table


def _tables(shard: Shard, columns: tuple[Column, ...]) -> Iterator[pa.Table]:
    credit = (*CREDIT_COLUMNS[len(CREDIT_KEY_COLUMNS) :], *columns)
    for steps in enriched_tables(shard, STEP_COLUMNS, credit):
        yield with_partition(steps, shard)
