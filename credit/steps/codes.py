"""Text columns as integer codes, so that nothing after this looks at text."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.steps.arrays import Ints
from graphcredit.store.errors import InputError
from graphcredit.store.parquet.numbers import numpy_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Codes:
    """Values as positions in a list of distinct texts."""

    code: Ints
    """[n] position in `texts`; -1 where the value is null."""
    texts: pa.Array
    """[num_texts] distinct texts."""

    def rank(self) -> Ints:
        """Return [n] the rank of each value in the order of its UTF-8 bytes; nulls give -1."""
        rank_of_text = np.empty(len(self.texts) + 1, np.int64)
        rank_of_text[numpy_of(pc.array_sort_indices(self.texts))] = np.arange(len(self.texts))
        rank_of_text[-1] = -1
        return rank_of_text[self.code]


def encode(column: pa.ChunkedArray) -> Codes:
    """Encode one text column, plain or dictionary."""
    return encode_together(column)[0]


def encode_together(*columns: pa.ChunkedArray) -> list[Codes]:
    """Encode text columns of equal length with one common list of texts.

    Raises:
        InputError: There is more text than pyarrow can number.
    """
    chunks = [chunk for column in columns for chunk in column.chunks]
    encoded = [c if pa.types.is_dictionary(c.type) else c.dictionary_encode() for c in chunks]
    type_ = pa.dictionary(pa.int32(), pa.string())
    try:
        unified = pa.chunked_array([c.cast(type_) for c in encoded], type_).unify_dictionaries()
    except pa.ArrowCapacityError as error:
        raise InputError(
            "the different texts of the tasks that are credited together must have less than 2 GiB:"
            " shorten the states (`state` is what tells them apart; `observation` has room for the "
            f"rest), or give each task fewer rollouts ({error})"
        ) from error
    if not unified.num_chunks:
        return [Codes(code=np.empty(0, np.int64), texts=pa.nulls(0, pa.string()))] * len(columns)
    code, texts = _indices(unified), unified.chunk(0).dictionary
    if unified.num_chunks == 1 and pa.types.is_dictionary(chunks[0].type):
        # Nothing was unified, and a foreign dictionary may repeat a text.
        distinct = texts.dictionary_encode()
        code_of_text = np.append(numpy_of(distinct.indices).astype(np.int64), -1)
        code, texts = code_of_text[code], distinct.dictionary
    return [Codes(code=codes, texts=texts) for codes in np.split(code, len(columns))]


def _indices(column: pa.ChunkedArray) -> Ints:
    parts = [numpy_of(chunk.indices, -1) for chunk in column.chunks]
    return np.concatenate(parts).astype(np.int64)
