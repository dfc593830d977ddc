"""Array types, and columns of lists as flat arrays."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphcredit.store.parquet.numbers import numpy_of

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ragged:
    """A column of n lists; `lists[row]` is one of them."""

    values: NDArray[Any]
    """[sum of lengths] the lists, one after the other."""
    starts: Ints
    """[n + 1] where each list starts in `values`, and the end of the last."""
    is_null: Bools
    """[n] the row has no list."""

    def __getitem__(self, row: int) -> NDArray[Any]:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def lengths(self) -> Ints:
        """[n] length of each list; 0 for a null."""
        return np.diff(self.starts)

    def count(self, is_counted: Bools) -> Ints:
        """Return [n] how many values of each list are counted, from a flag for each value."""
        before = np.concatenate(([0], np.cumsum(is_counted)))
        return before[self.starts[1:]] - before[self.starts[:-1]]

    def row_of(self, position: int) -> int:
        """Return the row whose list holds the value at a position."""
        return int(np.searchsorted(self.starts, position, side="right")) - 1


def ragged(column: pa.ChunkedArray, *, null: float) -> Ragged:
    """Return a list column as flat values."""
    lengths = numpy_of(pc.list_value_length(column))
    return Ragged(
        values=numpy_of(pc.list_flatten(column), null),
        starts=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
        is_null=numpy_of(column.is_null()),
    )
