"""What the footer of a Parquet file says of each column of a row group."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store.errors import unreadable

_READ_BYTES = 1 << 16
"""Bytes to read of a column at a time."""


def column_chunks(
    file: pq.ParquetFile, path: Path, row_group: int, columns: Collection[str] | None = None
) -> Mapping[str, pq.ColumnChunkMetaData]:
    """Return what the footer says of each column, by its path in the schema.

    pyarrow ends the process where it is asked about a damaged column, and raises where it reads
    one. So the first row is read before anything is asked.

    Raises:
        SchemaError: The file is damaged, or cannot be read.
    """
    try:
        with pq.ParquetFile(
            path.absolute(), metadata=file.metadata, buffer_size=_READ_BYTES
        ) as first:
            next(first.iter_batches(batch_size=1, row_groups=[row_group], columns=columns), None)
        return dict(
            _described(file, index, row_group)
            for index in range(file.metadata.num_columns)
            if columns is None or file.schema.column(index).path in columns
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(f"{path}, row group {row_group} cannot be read", error) from error


def _described(
    file: pq.ParquetFile, index: int, row_group: int
) -> tuple[str, pq.ColumnChunkMetaData]:
    leaf, chunk = file.schema.column(index), file.metadata.row_group(row_group).column(index)
    if chunk.physical_type != leaf.physical_type:  # a column of nulls is read without an error
        raise pa.ArrowInvalid(
            f"column {leaf.path} must be {leaf.physical_type}: its row group has "
            f"{chunk.physical_type}"
        )
    return chunk.path_in_schema, chunk
