"""Cutting an iteration into batches of whole groups, so that memory is bounded by a batch."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise
from graphcredit.credit.steps.codes import encode
from graphcredit.credit.steps.complete import TEXT_COLUMNS, refuse_shared_names
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.chunks import column_chunks
from graphcredit.store.parquet.shards import conform, open_parquet, row_groups, step_columns
from graphcredit.store.parquet.states import with_states

BATCH_ROWS = 1 << 17
"""Rows of a batch, a compromise: caches like small ones, numpy and pyarrow large ones."""

BATCH_BYTES = 1 << 28
"""Of state texts in a batch, each as often as its file has it; a batch needs several times that."""

_LONG_TEXTS = ["state", "next_state"]
_ROUNDING = 1e-6
"""Rows: sums of shares of a batch may be off by less."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardPart:
    """The part of a shard that belongs to a batch."""

    shard: int
    """Position of the shard in the iteration's list."""
    rows: Ints
    """[n] rows of the shard, ascending."""
    steps: pa.Table
    """[n] those steps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Which rows of which shard go into which batch."""

    num_rows: list[int]
    """Rows of each shard."""
    batch_of_row: list[Ints] | None
    """For each shard, [rows] the batch of each row; None where one batch holds everything."""
    shards_of_batch: list[list[int]]
    """The shards that have rows in each batch; an empty shard is in the first."""

    def mask_of(self, shard: int, batch: int) -> Bools | None:
        """Return [rows of the shard] which belong to the batch, or None for all of them."""
        if self.batch_of_row is None:
            return None
        wanted = self.batch_of_row[shard] == batch
        return None if wanted.all() else wanted

    def rows_of(self, shard: int, batch: int) -> Ints:
        """Return [n] the rows of the shard that belong to the batch, ascending."""
        mask = self.mask_of(shard, batch)
        return np.arange(self.num_rows[shard]) if mask is None else np.flatnonzero(mask)


def plan_batches(shards: Sequence[Shard], batch_rows: int = BATCH_ROWS) -> Plan:
    """Cut an iteration into batches, filled task by task in the order of their first rows.

    A worker writes a group into one shard more often than not. Where a group is spread over many
    shards, each batch that has some of it reads parts of all of them.

    Args:
        shards: All step shards of one run and iteration.
        batch_rows: A batch is full before it holds more rows than this, or more than `BATCH_BYTES`
            of states; only a task that does by itself goes beyond.

    Raises:
        SchemaError: A shard cannot be read, or a trajectory is in two tasks.
    """
    weights = [_weights(shard, batch_rows) for shard in shards]
    num_rows = [len(of_shard) for of_shard in weights]
    weight = np.concatenate(weights)
    if weight.sum() <= batch_rows:
        everything = [list(range(len(shards)))]
        return Plan(num_rows=num_rows, batch_of_row=None, shards_of_batch=everything)
    task = _tasks(shards)
    batches = _fill(np.bincount(task, weight).astype(np.float64), batch_rows)[task]
    batch_of_row = np.split(batches, np.cumsum(num_rows)[:-1])
    shards_of_batch: list[list[int]] = [[] for _ in range(batches.max() + 1)]
    for shard, batch_of_its_rows in enumerate(batch_of_row):
        for batch in np.unique(batch_of_its_rows) if len(batch_of_its_rows) else [0]:
            shards_of_batch[batch].append(shard)
    return Plan(num_rows=num_rows, batch_of_row=batch_of_row, shards_of_batch=shards_of_batch)


def _tasks(shards: Sequence[Shard]) -> Ints:
    """Return the task of each row of all shards, in order of first appearance."""
    names = [_read(shard, ("task_id", "trajectory_id"), None) for shard in shards]
    tasks, trajectories = (
        encode(pa.chunked_array([chunk for table in names for chunk in table[name].chunks]))
        for name in ("task_id", "trajectory_id")
    )
    refuse_shared_names(tasks, trajectories)
    return factorise(tasks.code)[0]


def _weights(shard: Shard, batch_rows: int) -> Floats:
    """Return how many rows of average length would fill a batch as much as each row. [rows]."""
    with open_parquet(shard.path) as file:
        weights = [np.empty(0)]
        for number in range(file.num_row_groups):
            num_rows = file.metadata.row_group(number).num_rows
            texts = column_chunks(file, shard.path, number, _LONG_TEXTS).values()
            num_bytes = sum(text.total_uncompressed_size for text in texts)
            in_rows = num_bytes * batch_rows / BATCH_BYTES / max(num_rows, 1)
            weights.append(np.full(num_rows, max(in_rows, 1.0)))
    return np.concatenate(weights)


def _fill(weights: Floats, capacity: int) -> Ints:
    """Return the batch of each task, from their weights in the order of their first rows."""
    batch = np.zeros(len(weights), np.int64)
    number, filled = 0, 0.0
    for position, weight in enumerate(weights.tolist()):
        if filled and filled + weight > capacity + _ROUNDING:
            number, filled = number + 1, 0.0
        batch[position] = number
        filled += weight
    return batch


def read_batches(
    shards: Sequence[Shard], plan: Plan, columns: Sequence[str]
) -> Iterator[list[ShardPart]]:
    """Yield the pieces of each batch, in the order of the shards; the next batch is read ahead."""
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(read_batch, shards, plan, 0, columns)
        for following in range(1, len(plan.shards_of_batch) + 1):
            pieces = ahead.result()
            if following < len(plan.shards_of_batch):
                ahead = reader.submit(read_batch, shards, plan, following, columns)
            yield pieces


def read_batch(
    shards: Sequence[Shard], plan: Plan, batch: int, columns: Sequence[str]
) -> list[ShardPart]:
    """Return the pieces of one batch, in the order of the shards."""
    return [
        ShardPart(
            shard=shard,
            rows=plan.rows_of(shard, batch),
            steps=_read(shards[shard], columns, plan.mask_of(shard, batch)),
        )
        for shard in plan.shards_of_batch[batch]
    ]


def _read(shard: Shard, names: Sequence[str], wanted: Bools | None) -> pa.Table:
    """Read columns of a shard: all rows, or the wanted ones from the row groups that hold any."""
    columns = step_columns(names)
    with open_parquet(shard.path, dictionaries=TEXT_COLUMNS) as file:
        where = str(shard.path)
        if wanted is None:
            present = [name for name in names if name in file.schema_arrow.names]
            table = file.read(columns=present)
            table = conform(table, columns, where=where, keep_dictionaries=True)
            return with_states(table, shard)
        rows = np.flatnonzero(wanted)
        table = pa.concat_tables(
            conform(table, columns, where=where, keep_dictionaries=True)
            for table in read_rows(file, names, rows)
        )
        return with_states(table, shard, rows)


def read_rows(file: pq.ParquetFile, names: Sequence[str], rows: Ints) -> Iterator[pa.Table]:
    """Yield some rows of a file; row groups with none of them are not read.

    Args:
        file: The file.
        names: Columns to read; those that the file lacks are left out.
        rows: [n] row numbers, ascending.
    """
    present = [name for name in names if name in file.schema_arrow.names]
    for number, places in row_groups(file, rows):
        yield file.read_row_group(number, columns=present).take(places)
