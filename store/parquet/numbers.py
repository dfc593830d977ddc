"""Values between Python, numpy and Arrow without pandas.

`pyarrow.array`, `from_pylist` and `to_numpy` import pandas where it is installed, to ask whether it
is involved: half a second of every process. What is here goes through the buffers.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def numpy_of(column: pa.Array | pa.ChunkedArray, null: float = 0) -> NDArray[Any]:
    """Return the values of a column of numbers or booleans. [n], perhaps read-only.

    Args:
        column: The column.
        null: Stands where the column is null.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_values(chunk, null) for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, _dtype(column)), *parts])


def arrow_of(
    values: NDArray[Any],
    type_: pa.DataType | None = None,
    *,
    is_null: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Return numbers or booleans as Arrow; values of the array's own type are not copied.

    Args:
        values: [n] values; where they are floats, NaN is null.
        type_: Type to cast them to; by default their own.
        is_null: [n] which are null.
    """
    if values.dtype.kind == "f" and is_null is None:
        is_null = np.isnan(values)
    validity = _bits(~is_null) if is_null is not None and is_null.any() else None
    data = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    own_type = pa.from_numpy_dtype(values.dtype)
    array = pa.Array.from_buffers(own_type, len(values), [validity, data])
    return array if type_ in (None, own_type) else array.cast(type_)


def repeat_text(text: str, number: int) -> pa.StringArray:
    """Return a text so many times."""
    encoded = text.encode()
    ends = np.arange(number + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.StringArray.from_buffers(number, pa.py_buffer(ends), pa.py_buffer(encoded * number))


def _values(array: pa.Array, null: float) -> NDArray[Any]:
    dtype = _dtype(array)
    if not len(array):
        return np.empty(0, dtype)
    stored = array.cast(pa.uint8()) if dtype == np.bool_ else array
    values = np.frombuffer(stored.buffers()[1], np.uint8 if dtype == np.bool_ else dtype)
    values = values[stored.offset : stored.offset + len(array)].view(dtype)
    if not array.null_count:
        return values
    return np.where(_values(pc.is_valid(array), null), values, np.asarray(null, dtype))


def _dtype(column: pa.Array | pa.ChunkedArray) -> np.dtype[Any]:
    return np.dtype(column.type.to_pandas_dtype())


def _bits(values: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


_NUMBERS = {
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
    pa.timestamp("us", tz="UTC"): np.int64,
}

_MOST_BYTES = (1 << 31) - 1
"""Of an array of texts: its offsets have 32 bits."""


def array_of(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return an array of values of its type and nulls, as `pa.array` does; times are microseconds.

    Raises:
        UnicodeEncodeError: A text has half of a surrogate pair.
    """
    if all(value is None for value in values):
        return pa.nulls(len(values), type_)
    is_long = type_ == pa.large_string()
    is_bytes = is_long or type_ in (pa.string(), pa.binary())
    is_nested = pa.types.is_list(type_) or pa.types.is_struct(type_)
    if not (is_bytes or is_nested or type_ == pa.bool_() or type_ in _NUMBERS):
        return pa.array(values, type_)
    valid = None
    given = values
    # `None in` would compare arrays, and is sooner done where there are none.
    if None in values if is_bytes else any(value is None for value in values):
        valid = _bits(np.array([value is not None for value in values], np.bool_))
        empty: Any = () if pa.types.is_list(type_) else {} if is_nested else "" if is_bytes else 0
        given = [empty if value is None else value for value in values]
    if pa.types.is_struct(type_):
        parts = [array_of([value.get(part.name) for value in given], part.type) for part in type_]
        return pa.Array.from_buffers(type_, len(values), [valid], children=parts)
    if pa.types.is_list(type_):
        are_arrays = len(given) and all(isinstance(value, np.ndarray) for value in given)
        items = (
            arrow_of(np.concatenate(given), type_.value_type)
            if are_arrays
            else array_of([*chain.from_iterable(given)], type_.value_type)
        )
        buffers = [valid, _ends(given)]
        return pa.Array.from_buffers(type_, len(values), buffers, children=[items])
    if is_bytes:
        encoded, content = _encoded(given)
        if len(content) > _MOST_BYTES and not is_long:
            return pa.array(values, type_)
        buffers = [_ends(encoded, np.int64 if is_long else np.int32), pa.py_buffer(content)]
    elif type_ == pa.bool_():
        buffers = [_bits(np.array(given, np.bool_))]
    else:
        buffers = [pa.py_buffer(np.array(given, _NUMBERS[type_]))]
    return pa.Array.from_buffers(type_, len(values), [valid, *buffers])


def _encoded(values: Sequence[str | bytes]) -> tuple[Sequence[str | bytes], bytes]:
    """Return texts or bytes of which each has the length of its UTF-8, and that of all together."""
    try:
        together = "".join(cast("Sequence[str]", values))
    except TypeError:  # some are bytes
        together = "\x80"
    if together.isascii():
        return values, together.encode()
    encoded = [v.encode() if isinstance(v, str) else v for v in values]
    return encoded, b"".join(encoded)


def repeated(value: Any, length: int, type_: pa.DataType) -> pa.Array:
    """Return an array that has one value everywhere."""
    return pa.nulls(length, type_) if value is None else array_of([value] * length, type_)


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table, as `pa.Table.from_pylist` does."""
    arrays = [array_of([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _ends(values: Sequence[Any], dtype: type = np.int32) -> pa.Buffer:
    """Return where each text or list begins in all of them, and the end."""
    ends = np.zeros(len(values) + 1, dtype)
    np.cumsum(np.fromiter(map(len, values), dtype, len(values)), out=ends[1:])
    return pa.py_buffer(ends)
