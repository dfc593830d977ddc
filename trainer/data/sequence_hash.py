"""Hashes of token sequences: equal steps go through the model only once."""

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.data.ragged import Ints, Ragged


def sequence_hashes(prompt: Ragged, response: Ragged, rows: Ints) -> NDArray[np.uint64]:
    """Return a hash of each step's prompt and response; equal ones have equal hashes.

    Args:
        prompt: Token ids of each step.
        response: The same.
        rows: [k] the steps.
    """
    # Where the response begins belongs to the sequence: its tokens are the ones that are scored.
    border = prompt.lengths.astype(np.uint64) * _factors(1)
    start = _sums(prompt, np.ones(len(prompt.lengths), np.int64))
    return (border + start + _sums(response, prompt.lengths + 1))[rows]


def _sums(lists: Ragged, first: Ints) -> NDArray[np.uint64]:
    """Return the hash of each list's values, where the first value has a given position."""
    shift = first - lists.starts[:-1]
    sums = _running_sums(lists.values, np.repeat(shift, lists.lengths))
    return sums[lists.starts[1:]] - sums[lists.starts[:-1]]


def _running_sums(values: NDArray[np.int32], shift: Ints) -> NDArray[np.uint64]:
    """Return [n + 1] the sum of the first values, each times the factor of its position.

    A difference of two sums is a hash that does not depend on earlier values.

    Args:
        values: [n] token ids.
        shift: [n] number to add to each value's place to get its position in its sequence.
    """
    position = np.arange(len(values)) + shift
    factors = _factors(int(position.max(initial=0)) + 1)
    terms = (values.astype(np.uint64) + np.uint64(1)) * factors[position]
    return np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))


def _factors(count: int) -> NDArray[np.uint64]:
    """Return odd random numbers, the same ones always."""
    random = np.random.default_rng(0).integers(0, 1 << 63, count, np.uint64)
    return random * np.uint64(2) + np.uint64(1)
