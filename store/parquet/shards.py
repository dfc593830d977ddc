"""Read Parquet files of the store, whoever wrote them.

A foreign writer may leave nullable columns out, add columns of its own, order them freely, and use
an equivalent Arrow type (`large_string`, a dictionary, `int64`). Tables that are read here always
have the schema's columns and types.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphcredit.store.errors import DamagedFileError, NewerSchemaError, SchemaError, unreadable
from graphcredit.store.files.digest import verify
from graphcredit.store.layout import Shard, Store
from graphcredit.store.schema import (
    PARTITION_COLUMNS,
    SCHEMA_VERSION,
    SCHEMA_VERSION_KEY,
    STEP_COLUMNS,
    Column,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TRAILER = 8
"""Bytes after the footer of a Parquet file: its length, and the magic number `PAR1`."""

_CLOCK_TICK = 2.0
"""Seconds within which two changes of a file may get the same modification time. No file system's
clock is coarser."""

_verified: dict[tuple[Path, bool], tuple[tuple[int, int, int], bool]] = {}
"""Cache of `is_verified`. Key: path, and whether the whole file was verified. Value: inode, size
and time of the file, and whether it has a digest."""
_TEXT_TYPES = (pa.string(), pa.list_(pa.string()))

_STEP_COLUMNS = {column.name: column for column in STEP_COLUMNS}


def open_parquet(
    path: Path, *, dictionaries: Iterable[str] = (), whole: bool = True
) -> pq.ParquetFile:
    """Open a Parquet file of the store. Its digest is verified before anything is parsed.

    Args:
        path: The file.
        dictionaries: Names of the text columns to read as dictionaries.
        whole: Verify the whole file. False verifies the footer, for callers that read no more.

    Raises:
        DamagedFileError: The file is not Parquet, or is damaged.
        NewerSchemaError: The file has a newer schema version.
        SchemaError: The file cannot be opened.
    """
    try:
        is_verified(path, whole=whole)
        try:
            file = _File(path, read_dictionary=list(dictionaries))
        except KeyError:
            # A dictionary column is missing or is not text: `conform` has the better message.
            file = _File(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(f"{path} cannot be read as Parquet", error) from error
    except DamagedFileError as error:
        raise unreadable(f"{path} must have the bytes it was written with", error) from error
    version = (file.schema_arrow.metadata or {}).get(SCHEMA_VERSION_KEY, b"1")
    if not version.isdigit() or len(version) > 9 or int(version) > SCHEMA_VERSION:
        raise NewerSchemaError(
            f"{path} has schema version {version.decode(errors='replace')}, this program reads up "
            f"to {SCHEMA_VERSION}: install a newer graphcredit"
        )
    return file


def is_verified(path: Path, *, whole: bool = True) -> bool:
    """Verify the digest of a file, once while the file stays the same; return whether it has one.

    Args:
        path: The file.
        whole: Verify the whole file, not only the footer.

    Raises:
        DamagedFileError: The file is damaged.
        OSError: The file cannot be read.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
    known = _verified.get((path, True)) or _verified.get((path, whole))
    if known is not None and known[0] == stamp:
        return known[1]
    result = verify(path, whole=whole)
    # A young file may change again within the same clock tick, unnoticed: do not cache it.
    if time.time() - status.st_mtime > _CLOCK_TICK:
        _verified[path, whole] = stamp, result
    return result


def refuse_newer(paths: Iterable[Path]) -> None:
    """Raise NewerSchemaError if an existing file has a newer schema version.

    Call this before replacing files. Files that cannot be read at all are not refused.
    """
    for path in paths:
        try:
            if path.exists():
                open_parquet(path, whole=False).close()
        except NewerSchemaError:
            raise
        except SchemaError:
            continue


class _File(pq.ParquetFile):
    """A Parquet file whose read errors name it."""

    def __init__(self, path: Path, **options: Any) -> None:
        # pyarrow takes a relative path with a colon for a URI.
        super().__init__(path.absolute(), **options)
        self._name = str(path)

    def read(self, *arguments: Any, **options: Any) -> pa.Table:
        with _naming(self._name):
            return super().read(*arguments, **options)

    def read_row_group(self, i: int, *arguments: Any, **options: Any) -> pa.Table:
        with _naming(f"{self._name}, row group {i}"):
            return super().read_row_group(i, *arguments, **options)

    def iter_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        with _naming(self._name):
            yield from super().iter_batches(*arguments, **options)


@contextmanager
def _naming(what: str) -> Generator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise unreadable(f"{what} cannot be read", error) from error


def conform(
    table: pa.Table, columns: Iterable[Column], *, where: str, keep_dictionaries: bool = False
) -> pa.Table:
    """Return a table with exactly the given columns, cast to the schema's types without loss.

    Args:
        table: The table as it was read.
        columns: The columns to return.
        where: The name of the file, for messages.
        keep_dictionaries: Leave a dictionary of the right value type as it is.

    Raises:
        SchemaError: A non-nullable column is missing, or a value does not fit its type.
    """
    arrays: list[pa.ChunkedArray] = []
    fields: list[pa.Field] = []
    for column in columns:
        array = _column_or_nulls(table, column, where)
        is_kept = keep_dictionaries and pa.types.is_dictionary(array.type)
        if array.type != column.type and not (is_kept and array.type.value_type == column.type):
            array = _cast(array, column, where)
        _check_text(array, column, where)
        arrays.append(array)
        fields.append(pa.field(column.name, array.type, column.nullable))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def read_table(path: Path, columns: Sequence[Column]) -> pa.Table:
    """Read some columns of a file; those that it may lack and does are null.

    Raises:
        SchemaError: The file cannot be read, or its columns are not those of the schema.
    """
    with open_parquet(path) as file:
        names = [column.name for column in columns if column.name in file.schema_arrow.names]
        return conform(file.read(columns=names), columns, where=str(path))


def with_partition(table: pa.Table, shard: Shard) -> pa.Table:
    """Return a table of a shard's rows with run and iteration as its first columns."""
    from graphcredit.store.parquet.numbers import repeated  # queries go without numpy

    for number, (column, value) in enumerate(
        zip(PARTITION_COLUMNS, (shard.run_id, shard.iteration), strict=True)
    ):
        values = repeated(value, table.num_rows, column.type)
        table = table.add_column(number, column.name, values)
    return table


def step_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """Return step columns by name.

    Raises:
        SchemaError: A name is not a column of `steps`.
    """
    unknown = sorted(set(names) - _STEP_COLUMNS.keys())
    if unknown:
        raise SchemaError(
            f"steps has no column {unknown[0]!r}; its columns are {', '.join(_STEP_COLUMNS)}"
        )
    return tuple(_STEP_COLUMNS[name] for name in names)


def read_steps(
    store: Store,
    *,
    columns: Iterable[str] | None = None,
    run_id: str | None = None,
    iteration: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the steps of a store, one table per row group; only the given columns are read.

    Args:
        store: The store.
        columns: Step columns; all of them by default. `run_id` and `iteration` always come first.
        run_id: Only this run.
        iteration: Only this iteration.
    """
    wanted = step_columns(_STEP_COLUMNS if columns is None else columns)
    for shard in store.shards(run_id, iteration):
        with open_parquet(shard.path) as file:
            present = [c.name for c in wanted if c.name in file.schema_arrow.names]
            for index in range(file.num_row_groups):
                table = file.read_row_group(index, columns=present)
                yield with_partition(conform(table, wanted, where=str(shard.path)), shard)


def row_groups(file: pq.ParquetFile, rows: "NDArray[np.int64]") -> Iterator[tuple[int, pa.Array]]:
    """Yield the index of each row group with any of some rows, and these rows' numbers within it.

    Args:
        file: The file.
        rows: [n] row numbers in the file, ascending.
    """
    from graphcredit.store.parquet.numbers import arrow_of  # queries go without numpy

    start = 0
    for index in range(file.num_row_groups):
        stop = start + file.metadata.row_group(index).num_rows
        first, last = rows.searchsorted((start, stop))
        if first < last:
            yield index, arrow_of(rows[first:last] - start)
        start = stop


def fingerprint(paths: Iterable[Path]) -> str:
    """Return a fingerprint of an iteration's shards, to recognise what was made of other ones.

    It hashes their names and footers. The recorder writes a shard only once. A program that
    converts a log may rewrite it, but then the footer changes: it has the size, the offset and the
    extremes of each column's values.

    Args:
        paths: All step shards of the iteration, or all credit shards.

    Raises:
        OSError: A shard cannot be read.
    """
    parts = {f"{path.parent.name}/{path.name}": _footer(path) for path in paths}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _footer(path: Path) -> str:
    """Return a hash of a Parquet file's footer, which describes the rest of the file."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TRAILER))
        length = int.from_bytes(file.read(_TRAILER)[:4], "little")
        # In a damaged file the length may be wrong: then hash the bytes that exist.
        file.seek(max(0, size - _TRAILER - length))
        return hashlib.sha256(file.read()).hexdigest()


def _column_or_nulls(table: pa.Table, column: Column, where: str) -> pa.ChunkedArray:
    if column.name in table.column_names:
        return table[column.name]
    if not column.nullable:
        raise SchemaError(
            f"{where} must have the column {column.name!r} ({column.type}: {column.meaning}); "
            f"it has {', '.join(table.column_names) or 'none'}"
        )
    return pa.chunked_array([pa.nulls(table.num_rows, column.type)])


def _cast(array: pa.ChunkedArray, column: Column, where: str) -> pa.ChunkedArray:
    try:
        cast = array.cast(column.type)
        if _num_infinite(cast) > _num_infinite(array):
            raise pa.ArrowInvalid("a number is outside the range of 32-bit floats")
    except pa.ArrowException as error:
        raise SchemaError(
            f"{where}: column {column.name!r} must be {column.type}, found {array.type}: {error}"
            f"{_first_bad(array, column.type)}"
        ) from error
    return cast


def _first_bad(array: pa.ChunkedArray, wanted: pa.DataType) -> str:
    """Say which row of a column cannot be cast; nothing if none can be told."""
    for row, value in enumerate(array):
        try:
            value.cast(wanted)
        except (pa.ArrowException, NotImplementedError):
            return f". The first such value is in row {row} (from 0): {value.as_py()!r}"
    return ""


def _num_infinite(array: pa.ChunkedArray) -> int:
    """Return how many values of a column, or of its lists, are infinite."""
    values = pc.list_flatten(array) if pa.types.is_list(array.type) else array
    if not pa.types.is_floating(values.type):
        return 0
    return pc.sum(pc.is_inf(values)).as_py() or 0


def _check_text(array: pa.ChunkedArray, column: Column, where: str) -> None:
    """Raise SchemaError for text that is not UTF-8, which pyarrow reads without an error."""
    if column.type in _TEXT_TYPES:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise SchemaError(f"{where}: column {column.name!r} must be UTF-8: {error}") from error
