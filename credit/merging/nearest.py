"""Each vector joins the most similar representative so far, or becomes one itself."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphcredit.credit.merging.admissible import UNKNOWN, is_compatible
from graphcredit.credit.steps.arrays import Ints, starts_of_runs

Vectors = NDArray[np.float32]

_BLOCK = 256
_TOLERANCE = 1e-5
"""Of a cosine in 32-bit arithmetic; a threshold of 1 still accepts a vector's own copy."""


def join_most_similar(
    vectors: Vectors, group: Ints, signature: Ints, threshold: float
) -> tuple[Ints, int]:
    """Find representatives group by group, in the order of the vectors.

    A vector joins the representative with the highest cosine among those that its signature allows
    (the first of equals), if that is at least the threshold. A representative without a signature
    takes that of the first vector with one to join it.

    Args:
        vectors: [n, dimension] unit vectors; of length 0 where a text has no features.
        group: [n] ascending; no vector joins another group's.
        signature: [n] from `guard.signature_of_nodes`.
        threshold: Least cosine to join at, above 0.

    Returns:
        [n] position of the representative (its own, of a representative), and how many vectors did
        not join their most similar representative because of its signature.
    """
    representative = np.arange(len(group))
    refused = 0
    starts = starts_of_runs(group).tolist()
    for start, stop in pairwise(starts):
        rows = slice(start, stop)
        joined, count = _join_in_group(vectors[rows], signature[rows], threshold)
        representative[rows] = joined + start
        refused += count
    return representative, refused


def _join_in_group(vectors: Vectors, signature: Ints, threshold: float) -> tuple[Ints, int]:
    joined = np.arange(len(vectors))
    signature = signature.copy()
    refused = 0
    chosen = np.empty(0, np.int64)
    for start in range(0, len(vectors), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(vectors)))
        columns = np.concatenate([chosen, block])
        cosine = vectors[block] @ vectors[columns].T
        is_close = cosine >= threshold - _TOLERANCE
        is_representative = np.arange(len(columns)) < len(chosen)
        for row, position in enumerate(block.tolist()):
            close = np.flatnonzero(is_close[row] & is_representative)
            allowed = close[is_compatible(signature[position], signature[columns[close]])]
            if not len(allowed):
                refused += bool(len(close))
                is_representative[len(chosen) + row] = True
                continue
            best = allowed[cosine[row, allowed].argmax()]
            refused += bool(cosine[row, close].max() > cosine[row, best])
            joined[position] = columns[best]
            if signature[columns[best]] == UNKNOWN:
                signature[columns[best]] = signature[position]
        chosen = columns[is_representative]
    return joined, refused
