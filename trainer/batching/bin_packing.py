"""Pack steps into micro-batches under a token cap, and spread these over ranks of equal load."""

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from graphcredit.trainer.data.ragged import Ints

ATTENTION_TOKENS = 16_384
"""Length at which attention costs a segment as much as everything else: 12 times the hidden size
for causal attention, of a model with a hidden size of about 1,400."""


def pack(sizes: Ints, capacity: int) -> list[Ints]:
    """Put items into bins by best fit, the largest first: each goes into the fullest bin it fits.

    Args:
        sizes: [n] sizes, none above the capacity.
        capacity: Greatest total size of a bin.

    Returns:
        The items of each bin, ascending; each item once. Fuller bins were opened first.
    """
    bins: list[list[int]] = []
    rooms: list[tuple[int, int]] = []
    for item in np.argsort(-sizes, kind="stable").tolist():
        size = int(sizes[item])
        slot = bisect_left(rooms, (size, -1))
        room, number = rooms.pop(slot) if slot < len(rooms) else (capacity, len(bins))
        if number == len(bins):
            bins.append([])
        bins[number].append(item)
        insort(rooms, (room - size, number))
    return [np.array(sorted(items)) for items in bins]


def cut(length: Ints, shared: Ints, capacity: int) -> list[range]:
    """Cut sequences that share prefixes into pieces under a cap, so that little is made twice.

    Where a piece begins, the tokens that its first sequence shares with the one before go through
    the model again. The sum of these is the least that any cut has.

    Args:
        length: [n] tokens of each sequence, in the order of prefixes; none above the cap.
        shared: [n] first tokens that each has in common with the one before it; 0 for the first.
        capacity: Most tokens of a piece, each prefix counted once.

    Returns:
        The pieces, in order. Sequences that share nothing are in different pieces.
    """
    before = np.concatenate([[0], np.cumsum(length - shared)])
    # Sequences i … j are before[j + 1] - before[i] + shared[i] tokens; more the smaller i is.
    size_from = before[:-1] - shared
    lost = np.zeros(len(length) + 1, np.int64)
    start = np.zeros(len(length), np.int64)
    low = 0
    for last in range(len(length)):
        if shared[last] == 0:
            low = last
        while before[last + 1] - size_from[low] > capacity:
            low += 1
        choices = lost[low : last + 1] + shared[low : last + 1]
        start[last] = low + int(choices.argmin())
        lost[last + 1] = choices.min()
    pieces: list[range] = []
    end = len(length)
    while end:
        pieces.append(range(int(start[end - 1]), end))
        end = pieces[-1].start
    return pieces[::-1]


def cost(new: Ints, length: Ints) -> float:
    """Return the cost of a forward and backward pass over some runs, in tokens.

    Everything but attention costs as much as there are tokens. Attention costs a sequence the
    square of its length, and a run its share of that: pairs of its tokens with those before them.
    """
    return float((new * (1 + (2 * length - new) / ATTENTION_TOKENS)).sum())


def spread(costs: Sequence[float], num_ranks: int) -> list[list[int]]:
    """Give each rank about equal cost, and no rank more than its share of the items, rounded up.

    The most expensive item goes first, each to the cheapest rank that has room.

    Returns:
        The items of each rank, the most expensive first.
    """
    most = -(-len(costs) // num_ranks)
    ranks: list[list[int]] = [[] for _ in range(num_ranks)]
    loads = [0.0] * num_ranks
    for item in np.argsort(-np.asarray(costs), kind="stable").tolist():
        open_ranks = [rank for rank in range(num_ranks) if len(ranks[rank]) < most]
        rank = min(open_ranks, key=loads.__getitem__)
        ranks[rank].append(item)
        loads[rank] += costs[item]
    return ranks
