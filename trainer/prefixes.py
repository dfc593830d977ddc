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

_SLICE_TOKENS = 1 << 20
"""Tokens that are hashed at one time, so that memory stays small."""


def count_unique(prompt: Ragged, response: Ragged, rows: Ints) -> int:
    """Return how many tokens a trie of some steps has.

    Args:
        prompt: Token ids of each step.
        response: The same, following those of the prompt.
        rows: [k] the steps.
    """
    lengths = (prompt.lengths + response.lengths)[rows]
    slice_of_row = np.cumsum(lengths) // _SLICE_TOKENS
    cuts = np.flatnonzero(np.diff(slice_of_row)) + 1
    multipliers = _multipliers(int(lengths.max(initial=0)))
    parts = [
        _blocks([x for row in part.tolist() for x in (prompt[row], response[row])], multipliers)
        for part in np.split(rows, cuts)
        if len(part)
    ]
    if not parts:
        return 0
    hashes, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
    _, first = np.unique(hashes, return_index=True)
    return int(sizes[first].sum())


def _blocks(
    pieces: list[NDArray[np.int32]], multipliers: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], Ints]:
    """Return a hash of the beginning up to the end of each block, and the tokens of each block.

    Args:
        pieces: Prompt and response of each step in turn.
        multipliers: A random odd number for each position of a sequence.
    """
    piece_lengths = np.array([len(piece) for piece in pieces], np.int64)
    lengths = piece_lengths[0::2] + piece_lengths[1::2]
    stops = np.cumsum(lengths)
    position = np.arange(stops[-1]) - np.repeat(stops - lengths, lengths)
    terms = (np.concatenate(pieces).astype(np.uint64) + np.uint64(1)) * multipliers[position]
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)))
    is_end = (position + 1) % _BLOCK == 0
    is_end[stops - 1] = True
    ends = np.flatnonzero(is_end)
    step = np.searchsorted(stops, ends, side="right")
    hashes = total[ends + 1] - total[(stops - lengths)[step]]
    return hashes, position[ends] % _BLOCK + 1


def _multipliers(length: int) -> NDArray[np.uint64]:
    random = np.random.default_rng(0)
    return random.integers(0, 1 << 63, length, np.uint64) * np.uint64(2) + np.uint64(1)
