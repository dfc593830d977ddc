"""How many tokens would be left if steps shared what they have in common from the start on.

The steps of a trajectory often repeat its history, and those of a group its task. A trie of all
sequences has each common beginning once; the ratio of raw tokens to its tokens says what packing by
shared prefix could save.
"""

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.data.ragged import Ints, Ragged

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
    # Where the response begins belongs to the sequence: its tokens are the ones that are scored.
    border = prompt.lengths.astype(np.uint64) * _factors(1)
    start = _sums(prompt, np.ones(len(prompt.lengths), np.int64))
    return (border + start + _sums(response, prompt.lengths + 1))[rows]


def _sums(lists: Ragged, first: Ints) -> NDArray[np.uint64]:
    """Return for each list the hash of its values, the first of them at a position."""
    shift = first - lists.starts[:-1]
    sums = _running_sums(lists.values, np.repeat(shift, lists.lengths))
    return sums[lists.starts[1:]] - sums[lists.starts[:-1]]


def _blocks(pieces: list[NDArray[np.int32]]) -> tuple[NDArray[np.uint64], Ints]:
    """Return a hash of the beginning up to the end of each block, and the tokens of each block.

    Args:
        pieces: Prompt and response of each step in turn.
    """
    piece_lengths = np.array([len(piece) for piece in pieces], np.int64)
    lengths = piece_lengths[0::2] + piece_lengths[1::2]
    start = np.repeat(np.cumsum(lengths) - lengths, lengths)
    sums = _running_sums(np.concatenate(pieces), -start)
    length = np.arange(len(start)) - start + 1
    is_last = np.append(start[1:] != start[:-1], True)
    ends = np.flatnonzero(is_last | (length % _BLOCK == 0))
    return sums[ends + 1] - sums[start[ends]], (length[ends] - 1) % _BLOCK + 1


def _running_sums(values: NDArray[np.int32], shift: Ints) -> NDArray[np.uint64]:
    """Return [n + 1] the sum of the first values, each times the factor of its position.

    Differences of two sums are hashes that do not depend on what stands before.

    Args:
        values: [n] token ids.
        shift: [n] what to add to the place of each for its position in its sequence.
    """
    position = np.arange(len(values)) + shift
    factors = _factors(int(position.max(initial=0)) + 1)
    terms = (values.astype(np.uint64) + np.uint64(1)) * factors[position]
    return np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))


def _factors(count: int) -> NDArray[np.uint64]:
    """Return odd random numbers, the same ones always."""
    random = np.random.default_rng(0).integers(0, 1 << 63, count, np.uint64)
    return random * np.uint64(2) + np.uint64(1)
