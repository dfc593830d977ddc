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
        place = bisect_left(rooms, (size, -1))
        room, number = rooms.pop(place) if place < len(rooms) else (capacity, len(bins))
        if number == len(bins):
            bins.append([])
        bins[number].append(item)
        insort(rooms, (room - size, number))
    return [np.array(sorted(items)) for items in bins]


def cost(lengths: Ints) -> float:
    """Return the cost of a forward and backward pass over some segments, in tokens.

    Attention costs the square of a segment's length, and everything else its length.
    """
    return float((lengths * (1 + lengths / ATTENTION_TOKENS)).sum())


def spread(costs: Sequence[float], num_ranks: int) -> list[list[int]]:
    """Give each rank about equal cost, and no rank more than its share of the items, rounded up.

    The most expensive item goes first, each to the cheapest rank that has room.

    Args:
        costs: [n] cost of each item.
        num_ranks: How many ranks.

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
