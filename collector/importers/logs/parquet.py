"""Read the rows of a Parquet or Arrow file, a few at a time."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.collector.importers.logs.arrow_sizes import longest_of, refuse_encoded, sizes_of
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

_TEXTS = ("STRING", "JSON", "ENUM", "NONE")
"""Logical types of texts in Parquet; a column of bytes has none."""

_ARROW_MAGIC = b"ARROW1"
"""How a file begins; a stream does not."""

_ROWS_AT_A_TIME = 64
"""Rows in memory as Python objects."""

_SMALL_BYTES, _SMALL = 64 << 20, 2_000_000
"""Bytes and values of rows that may be in memory as Python objects together."""

_REPEATED_BYTES = 1 << 30
"""Bytes that texts of one dictionary may have in the lists of a group before they are measured."""

_BATCH_BYTES = 128 << 20
"""Bytes of a batch, if every row has the longest value that its dictionary may hold."""


def rows_of(path: Path, limit: int) -> Iterator[Record]:
    """Yield the rows of a file; a RowError for one with more than a record may have."""
    batches = _arrow_batches(path) if kind_of(path) in ARROW else _parquet_batches(path)
    number = 0
    for batch, share in batches:
        num_values, num_bytes = sizes_of(batch.columns)
        is_small = num_bytes <= min(_SMALL_BYTES, limit) and num_values <= _SMALL
        singles = (_row(batch.slice(row, 1), limit) for row in range(batch.num_rows))
        rows = _decoded(batch).to_pylist() if is_small else singles
        for value in rows:
            number += 1
            yield Record(path=path, place=f"row {number}", value=value, share=share)


def _parquet_batches(path: Path) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield some rows at a time, and how much of the file has been read with them."""
    whole = path.absolute()  # a relative path with a colon is a URL to pyarrow
    with pq.ParquetFile(whole) as file:
        refuse_encoded(file.schema_arrow)
        number, total = 0, max(file.metadata.num_rows, 1)
        for group in range(file.num_row_groups):
            repeated = _repeated(file, whole, group)
            size = _num_rows(file.metadata.row_group(group))
            with _as_codes(file, whole, repeated) if repeated else nullcontext(file) as reader:
                for batch in reader.iter_batches(batch_size=size, row_groups=[group]):
                    number += batch.num_rows
                    yield batch, number / total


def _as_codes(file: pq.ParquetFile, path: Path, leaves: list[str]) -> pq.ParquetFile:
    """Return a file whose texts are read as codes, each once: to count them takes no more."""
    return pq.ParquetFile(path, metadata=file.metadata, read_dictionary=leaves)


def _repeated(file: pq.ParquetFile, path: Path, group: int) -> list[str]:
    """Return the texts in lists that a group's dictionary might repeat to more than memory holds.

    The first row, which has the dictionaries, is read before anything is asked about a column:
    pyarrow ends the process where it is asked about a damaged one.
    """
    leaves = {index: file.schema.column(index) for index in range(file.metadata.num_columns)}
    texts = {
        index: leaf
        for index, leaf in leaves.items()
        if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type in _TEXTS
    }
    with _as_codes(file, path, [leaf.path for leaf in texts.values()]) as codes:
        first = next(codes.iter_batches(batch_size=1, row_groups=[group]), None)
    dictionaries = () if first is None else _dictionaries(first.columns)
    return [
        leaf.path
        for (index, leaf), dictionary in zip(texts.items(), dictionaries, strict=False)
        if leaf.max_repetition_level > 0
        and file.metadata.row_group(group).column(index).num_values * longest_of(dictionary)
        > _REPEATED_BYTES
    ]


def _dictionaries(arrays: Iterable[Any]) -> Iterator[pa.Array]:
    """Yield the dictionaries of arrays, at all depths."""
    for array in arrays:
        if pa.types.is_dictionary(array.type):
            yield array.dictionary
        elif pa.types.is_struct(array.type):
            yield from _dictionaries(array.flatten())
        elif pa.types.is_map(array.type):
            yield from _dictionaries([array.keys, array.items])
        elif pa.types.is_nested(array.type):
            yield from _dictionaries([array.values])


def _arrow_batches(path: Path) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield the rows of an Arrow file or stream, as `_parquet_batches`."""
    with pa.OSFile(str(path)) as file:
        size = max(file.size(), 1)
        is_file = file.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
        file.seek(0)
        if is_file:
            reader = pa.ipc.open_file(file)
            refuse_encoded(reader.schema)
            total = reader.num_record_batches
            batches = ((reader.get_batch(n), (n + 1) / total) for n in range(total))
        else:
            reader = pa.ipc.open_stream(file)
            refuse_encoded(reader.schema)
            batches = ((batch, file.tell() / size) for batch in reader)
        for batch, share in batches:
            batch.validate(full=True)  # offsets that lead out of the file would end the process
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


def _row(batch: pa.RecordBatch, limit: int) -> Any:
    num_values, num_bytes = sizes_of(batch.columns)
    if num_bytes > limit:
        return too_long(limit)
    if num_values > MOST_VALUES or (num_values > MOST_CONTAINERS and _has_objects(batch.schema)):
        return too_many()
    return batch.to_pylist()[0]


def _has_objects(types: Iterable[pa.Field]) -> bool:
    """Return whether a list in some columns has lists or objects in it."""
    return any(
        pa.types.is_nested(field.type)
        and (pa.types.is_struct(field.type) or pa.types.is_nested(field.type.field(0).type))
        for field in types
    )
