"""Groups whose texts are split into words together: words need many times the room of texts."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.steps.arrays import Ints, starts_of_runs
from graphcredit.store.parquet.numbers import numpy_of

_BYTES = 8 << 20


def text_slices(texts: pa.Array, node_start: Ints) -> Iterator[range]:
    """Yield the nodes of some groups after those of others; a long group is a slice by itself.

    Args:
        texts: [num_nodes] what each node says.
        node_start: [num_groups + 1] first node of each group.
    """
    size = np.append(0, np.cumsum(numpy_of(pc.binary_length(texts)).astype(np.int64)))
    cuts = node_start[starts_of_runs(size[node_start[:-1]] // _BYTES)]
    for first, stop in pairwise(cuts.tolist()):
        yield range(first, stop)
