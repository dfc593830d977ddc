"""Convert the values of query results to Python's, and to types that Parquet can store."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

_ROWS, _BYTES = 4096, 4 << 20
"""Most rows and Arrow bytes to convert at a time; Python's values are several times as large."""

_INFINITIES = {
    pa.date32(): 2**31 - 1,
    pa.timestamp("us"): 2**63 - 1,
    pa.timestamp("us", tz="UTC"): 2**63 - 1,
}
"""DuckDB's value for infinity, by type; the negative value is minus infinity."""


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column's values; dates before the year 1 and after 9999 are ISO text."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        return [_value(scalar) for scalar in column]


def python_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table, holding a few megabytes of them at a time."""
    num_rows = max(1, min(_ROWS, table.num_rows * _BYTES // max(1, table.nbytes)))
    for batch in table.to_batches(max_chunksize=num_rows):
        yield from zip(*map(python_values, batch.columns), strict=True)


def for_parquet(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return a table that Parquet can store, and the names of columns that had to become text."""
    renamed: list[str] = []
    for index, field in enumerate(table.schema):
        if not _is_storable(field):
            texts = [
                value
                if value is None or isinstance(value, str)
                else json.dumps(value, ensure_ascii=False, default=str)
                for value in python_values(table[index])
            ]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
            renamed.append(field.name)
    return table, renamed


def _is_storable(field: pa.Field) -> bool:
    import pyarrow.parquet as pq

    try:
        pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
    except pa.ArrowNotImplementedError:
        return False
    return True


def _value(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    match scalar:
        case pa.StructScalar():
            return {name: _value(item) for name, item in scalar.items()}
        case pa.MapScalar():
            return [tuple(map(_value, entry.values())) for entry in scalar.values]
        case pa.ListScalar() | pa.LargeListScalar() | pa.FixedSizeListScalar():
            return list(map(_value, scalar.values))
        case pa.UnionScalar():
            return _value(scalar.value)
        case pa.Date32Scalar() | pa.TimestampScalar():
            return _date(scalar)
        case _:
            return scalar.as_py()


def _date(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        infinity = _INFINITIES.get(scalar.type)
        if infinity is not None and abs(scalar.value) == infinity:
            return "infinity" if scalar.value > 0 else "-infinity"
        return str(scalar.cast(pa.string())).replace(" ", "T", 1)
