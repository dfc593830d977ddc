"""Arrow arrays of Python values.

`pa.array` looks for pandas first, and where it is installed, its import takes half a second of
each process.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_NUMBERS = {
    pa.int32(): np.int32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
    pa.timestamp("us", tz="UTC"): np.int64,
}

_MOST_BYTES = (1 << 31) - 1
"""Of an array of texts: its offsets have 32 bits."""


def array_of(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return an array of values of its type and nulls, as `pa.array` does.

    Raises:
        UnicodeEncodeError: A text has half of a surrogate pair.
    """
    is_text, is_flag = type_ == pa.string(), type_ == pa.bool_()
    if not (is_text or is_flag or type_ in _NUMBERS):
        return pa.array(values, type_)
    valid = None
    given = values
    if None in values:
        valid = _bits([value is not None for value in values])
        given = [("" if is_text else 0) if value is None else value for value in values]
    if is_text:
        buffers = _texts(given)
    elif is_flag:
        buffers = [_bits(given)]
    else:
        buffers = [pa.py_buffer(np.array(given, _NUMBERS[type_]))]
    if buffers is None:
        return pa.array(values, type_)
    return pa.Array.from_buffers(type_, len(values), [valid, *buffers])


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array(flags, np.bool_), bitorder="little"))


def _texts(texts: Sequence[str]) -> list[pa.Buffer] | None:
    """Return where each text ends, and all of them; None if they are too long for one array."""
    encoded = [text.encode() for text in texts]
    content = b"".join(encoded)
    if len(content) > _MOST_BYTES:
        return None
    ends = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, encoded), np.int32, len(texts)), out=ends[1:])
    return [pa.py_buffer(ends), pa.py_buffer(content)]


def repeated(value: Any, length: int, type_: pa.DataType) -> pa.Array:
    """Return an array that has one value everywhere."""
    return pa.nulls(length, type_) if value is None else array_of([value] * length, type_)
