"""How long Arrow's values are once each is a Python object, as often as it counts.

An encoding may have one long value once, and refer to it a million times.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.collector.importers.logs.files import RowError

_ENCODED = (
    *(pa.types.is_run_end_encoded, pa.types.is_union),
    *(pa.types.is_list_view, pa.types.is_large_list_view),
)
"""Types whose lengths nobody can tell without decoding them; programs that write logs have none."""

_VIEW_WORDS = 4
"""Of 4 bytes in a view of a text; the first is its length."""


def refuse_encoded(fields: Iterable[pa.Field], place: str = "") -> None:
    """Raise RowError for a column of a type that can repeat its values without a bound."""
    for field in fields:
        path, type_ = f"{place}{field.name}", _stored(field.type)
        is_nested = pa.types.is_nested(type_)
        if pa.types.is_dictionary(type_):
            is_encoded = pa.types.is_nested(type_.value_type)
        else:
            is_encoded = any(is_type(type_) for is_type in _ENCODED)
        if is_encoded:
            raise RowError(f"column {path} must be cast to plain lists and texts: it is {type_}")
        if is_nested:
            refuse_encoded(map(type_.field, range(type_.num_fields)), f"{path}.")


def sizes_of(arrays: Iterable[pa.Array]) -> tuple[int, int]:
    """Return the number of values in arrays, at all depths, and their bytes."""
    num_values = num_bytes = 0
    for array in arrays:
        num_values += len(array)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_struct(array.type):
            inner = sizes_of(array.flatten())
        elif pa.types.is_map(array.type):
            start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
            inner = sizes_of([array.keys[start:end], array.items[start:end]])
        elif pa.types.is_nested(array.type):
            inner = sizes_of([array.flatten()])
        else:
            inner = (0, _num_bytes(array))
        num_values, num_bytes = num_values + inner[0], num_bytes + inner[1]
    return num_values, num_bytes


def longest_of(texts: pa.Array) -> int:
    """Return the bytes of the longest of some texts."""
    return pc.max(pc.binary_length(texts)).as_py() or 0


def _stored(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _num_bytes(array: Any) -> int:
    if pa.types.is_dictionary(array.type):
        if not _has_lengths(array.dictionary.type):
            return len(array) * 8
        lengths = pc.take(pc.binary_length(array.dictionary), array.indices)
    elif pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        return _bytes_of_views(array.drop_null())
    elif _has_lengths(array.type):
        lengths = pc.binary_length(array)
    else:
        return array.nbytes
    return pc.sum(lengths.cast(pa.int64())).as_py() or 0


def _has_lengths(type_: pa.DataType) -> bool:
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return is_text or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)


def _bytes_of_views(array: Any) -> int:
    words = memoryview(array.buffers()[1] or b"").cast("b").cast("i")
    start = array.offset * _VIEW_WORDS
    return sum(words[start : start + len(array) * _VIEW_WORDS : _VIEW_WORDS])
