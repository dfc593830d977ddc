"""Numbers between numpy and Arrow without pandas.

`pyarrow.array` and `to_numpy` import pandas where it is installed, to ask whether it is involved: a
third of a second of every process. What is here goes through the buffers.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from typing import Any

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
