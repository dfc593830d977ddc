"""How many tokens would be left if steps shared what they have in common from the start on.

The steps of a trajectory often repeat its history, and those of a group its task. A trie of all
sequences has each common beginning once; the ratio of raw tokens to its tokens says what packing by
shared prefix could save.
"""

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.arrays import Ints, Ragged

_BLOCK = 16
"""Beginnings are compared after every this many tokens, and at the end: the count is an upper bound
that is exact for equal sequences and for prefixes of whole blocks."""

_SAMPLE_TOKENS = 1 << 20
"""Tokens of a row group that are looked at: the steps of a trajectory, and most often those of a
group, stand side by side, so the first ones tell."""


def sample_prefixes(prompt: Ragged, response: Ragged, rows: Ints) -> tuple[int, int]:
    """Return how many tokens the first of some steps have, and how many a trie of them has.

    Args:
        prompt: Token ids of each step.
        response: The same, following those of the prompt.
        rows: [k] the steps.
    """
    lengths = (prompt.lengths + response.lengths)[rows]
    count = max(1, int(np.searchsorted(np.cumsum(lengths), _SAMPLE_TOKENS, side="right")))
    pieces = [ids for row in rows[:count].tolist() for ids in (prompt[row], response[row])]
    if not pieces:
        return 0, 0
    hashes, sizes = _blocks(pieces)
    _, first = np.unique(hashes, return_index=True)
    return int(sizes.sum()), int(sizes[first].sum())


def sequence_hashes(prompt: Ragged, response: Ragged, rows: Ints) -> NDArray[np.uint64]:
    """Return a hash of each step's prompt and response; equal ones have equal hashes.

    Args:
        prompt: Token ids of each step.
        response: The same.
        rows: [k] the steps.
    """
    factors = _factors(int((prompt.lengths + response.lengths).max(initial=0)) + 1)
    start = _sums(prompt, np.zeros(len(prompt.lengths), np.int64), factors)
    whole = start + _sums(response, prompt.lengths, factors)
    # Where the response begins belongs to the sequence: its tokens are the ones that are scored.
    return (whole + prompt.lengths.astype(np.uint64) * factors[-1])[rows]


def _sums(lists: Ragged, offset: Ints, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return for each list the sum of its values, each times the factor of its position."""
    lengths = lists.lengths
    position = np.arange(len(lists.values)) - np.repeat(lists.starts[:-1] - offset, lengths)
    terms = (lists.values.astype(np.int64).astype(np.uint64) + np.uint64(1)) * factors[position]
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))
    return total[lists.starts[1:]] - total[lists.starts[:-1]]


def _factors(count: int) -> NDArray[np.uint64]:
    """Return odd random numbers, the same ones always."""
    random = np.random.default_rng(0).integers(0, 1 << 63, count, np.uint64)
    return random * np.uint64(2) + np.uint64(1)


def _blocks(pieces: list[NDArray[np.int32]]) -> tuple[NDArray[np.uint64], Ints]:
    """Return a hash of the beginning up to the end of each block, and the tokens of each block.

    Args:
        pieces: Prompt and response of each step in turn.
    """
    piece_lengths = np.array([len(piece) for piece in pieces], np.int64)
    lengths = piece_lengths[0::2] + piece_lengths[1::2]
    stops = np.cumsum(lengths)
    position = np.arange(stops[-1]) - np.repeat(stops - lengths, lengths)
    terms = np.concatenate(pieces, dtype=np.uint64, casting="unsafe") + np.uint64(1)
    terms *= _factors(int(lengths.max()))[position]
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))
    is_end = (position + 1) % _BLOCK == 0
    is_end[stops - 1] = True
    ends = np.flatnonzero(is_end)
    step = np.searchsorted(stops, ends, side="right")
    hashes = total[ends + 1] - total[(stops - lengths)[step]]
    return hashes, position[ends] % _BLOCK + 1
