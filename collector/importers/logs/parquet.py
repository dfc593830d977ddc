"""Read the rows of a Parquet or Arrow file, a few at a time."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.collector.importers.logs.files import (
    MOST_CONTAINERS,
    MOST_VALUES,
    Record,
    kind_of,
    too_long,
    too_many,
)

ARROW = (".arrow", ".feather", ".ipc")
"""Files of Arrow's own format; `datasets` writes streams of it."""

_ARROW_MAGIC = b"ARROW1"
"""How a file begins; a stream does not."""

_ROWS_AT_A_TIME = 64
"""Rows in memory as Python objects."""

_SMALL_BYTES, _SMALL = 64 << 20, 2_000_000
"""Bytes and values of rows that may be in memory as Python objects together."""

_BATCH_BYTES = 128 << 20
"""Bytes of a batch, if every row has the longest value that its dictionary may hold."""


def rows_of(path: Path, limit: int) -> Iterator[Record]:
    """Yield the rows of a file; a RowError for one with more than a record may have."""
    batches = _arrow_batches(path) if kind_of(path) in ARROW else _parquet_batches(path)
    number = 0
    for read, share in batches:
        batch = _decoded(read)
        is_small = batch.nbytes <= min(_SMALL_BYTES, limit)
        is_small = is_small and _num_values(batch.columns) <= _SMALL
        for value in batch.to_pylist() if is_small else _long_rows(batch, limit):
            number += 1
            yield Record(path=path, place=f"row {number}", value=value, share=share)


def _parquet_batches(path: Path) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield some rows at a time, and how much of the file has been read with them."""
    with pq.ParquetFile(path.absolute()) as file:  # a relative path with a colon is a URL to it
        number, total = 0, max(file.metadata.num_rows, 1)
        for group in range(file.num_row_groups):
            size = _num_rows(file.metadata.row_group(group))
            for batch in file.iter_batches(batch_size=size, row_groups=[group]):
                number += batch.num_rows
                yield batch, number / total


def _arrow_batches(path: Path) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield the rows of an Arrow file or stream, as `_parquet_batches`."""
    with pa.memory_map(str(path)) as file:
        size = max(file.size(), 1)
        is_file = file.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
        file.seek(0)
        if is_file:
            reader = pa.ipc.open_file(file)
            total = reader.num_record_batches
            batches = ((reader.get_batch(n), (n + 1) / total) for n in range(total))
        else:
            batches = ((batch, file.tell() / size) for batch in pa.ipc.open_stream(file))
        for batch, share in batches:
            for start in range(0, batch.num_rows, _ROWS_AT_A_TIME):
                yield batch.slice(start, _ROWS_AT_A_TIME), share


def _num_rows(group: pq.RowGroupMetaData) -> int:
    """Return how many rows to read at a time, each of which may have the longest value."""
    columns = map(group.column, range(group.num_columns))
    longest = [c.total_uncompressed_size for c in columns if c.has_dictionary_page]
    return max(1, min(_ROWS_AT_A_TIME, _BATCH_BYTES // max(1, sum(longest))))


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without dictionaries, in which a value is there as often as it counts."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _long_rows(batch: pa.RecordBatch, limit: int) -> Iterator[Any]:
    return (_row(batch.slice(row, 1), limit) for row in range(batch.num_rows))


def _row(batch: pa.RecordBatch, limit: int) -> Any:
    if batch.nbytes > limit:
        return too_long(limit)
    num_values = _num_values(batch.columns)
    if num_values > MOST_VALUES or (num_values > MOST_CONTAINERS and _has_objects(batch.schema)):
        return too_many()
    return batch.to_pylist()[0]


def _num_values(arrays: Iterable[pa.Array]) -> int:
    """Return the number of values in arrays, at all depths."""
    number = 0
    for array in arrays:
        number += len(array)
        if pa.types.is_struct(array.type):
            number += _num_values(array.flatten())
        elif pa.types.is_nested(array.type):
            number += _num_values([array.flatten()])
    return number


def _has_objects(types: Iterable[pa.Field]) -> bool:
    """Return whether a list in some columns has lists or objects in it."""
    return any(
        pa.types.is_nested(field.type)
        and (pa.types.is_struct(field.type) or pa.types.is_nested(field.type.field(0).type))
        for field in types
    )
