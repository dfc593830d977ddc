"""An order of steps in which those with a common prefix are neighbours, and its length.

In a lexicographic order, what a sequence has in common with any before it, it has in common with
the one just before it. So the tokens that a set of sequences has, each prefix counted once, follow
from the order and one number for each sequence, without a tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphcredit.trainer.data.ragged import Ints
from graphcredit.trainer.data.step_index import StepIndex


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """Some steps in the prefix order, and the tokens that none before them has."""

    order: Ints
    """[k] which of the steps comes when."""
    length: Ints
    """[k] tokens of each, in that order."""
    shared: Ints
    """[k] its first tokens that the one before it has too; 0 for the first."""

    @property
    def new(self) -> Ints:
        """[k] tokens that go through the model for it, if those before it are there."""
        return self.length - self.shared


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefixOrder:
    """The prefix order of the n steps of an index."""

    rank: Ints
    """[n] place of each step."""
    shared: Ints
    """[n] by place: how many first tokens a step has in common with the one before it."""
    length: Ints
    """[n] tokens of each step of the index."""

    def runs(self, steps: Ints) -> Runs:
        """Return some steps, at least one and each once, in this order.

        What two steps have in common is the least that neighbours between them have.
        """
        order = np.argsort(self.rank[steps])
        rank = self.rank[steps[order]]
        gaps = rank[:-1] + 1
        inner = np.minimum.reduceat(self.shared[: rank[-1] + 1], gaps) if len(gaps) else gaps
        return Runs(order=order, length=self.length[steps[order]], shared=np.append(0, inner))


def equal_order(index: StepIndex) -> PrefixOrder:
    """Return an order in which only equal steps, by their hashes, have anything in common."""
    order = np.argsort(index.sequence, kind="stable")
    rank = np.empty(len(index), np.int64)
    rank[order] = np.arange(len(index))
    sequence = index.sequence[order]
    is_again = np.append(False, sequence[1:] == sequence[:-1])
    shared = np.where(is_again, index.length[order], 0)
    return PrefixOrder(rank=rank, shared=shared, length=index.length)


def sort_by_prefix(sequences: Sequence[NDArray[np.int32]]) -> tuple[Ints, Ints]:
    """Sort sequences so that those that begin alike are neighbours, the longer one first.

    Returns:
        [n] positions of the sequences in descending lexicographic order, and [n] how many first
        tokens each has in common with the one before it. What continues another comes before it,
        so that the other has nothing of its own.
    """
    keys = [sequence.astype(">i4").tobytes() for sequence in sequences]
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    shared = [0] * min(1, len(keys))
    for before, after in pairwise(order):
        shared.append(_num_common(sequences[before], sequences[after]))
    return np.array(order, np.int64), np.array(shared, np.int64)


def _num_common(one: NDArray[np.int32], other: NDArray[np.int32]) -> int:
    """Return how many first tokens two sequences have in common."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length
