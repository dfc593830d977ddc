"""Similarity of the states of a group, by sets that describe them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphcredit.credit.steps.arrays import Bools, Floats, Ints, distinct_pairs, factorise, ranges

Bits: TypeAlias = NDArray[np.uint64]
"""[num_nodes, num_words] a set as the bits of some words."""

_WORD = 64
_BIT = np.uint64(1) << np.arange(_WORD, dtype=np.uint64)
_FEW = 16
"""Members of less than one node in so many are looked up; others are compared as bits."""

_BLOCK = 1 << 20
"""Words of bits that are compared at a time: bounds the memory, changes no number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sets:
    """A set of codes for each node; nodes without a pair have the empty set."""

    node: Ints
    """[num_pairs] ascending."""
    code: Ints
    """[num_pairs] a member of the node's set; each pair stands here once."""

    def at(self, is_kept: Bools) -> "Sets":
        """Return the sets of the nodes that are kept, [num_nodes]; others have the empty set."""
        own = is_kept[self.node]
        return Sets(node=self.node[own], code=self.code[own])


def sets_of(node: Ints, code: Ints) -> Sets:
    """Return the distinct pairs of a node and a code, in ascending order."""
    node, code = distinct_pairs(node, code)
    return Sets(node=node, code=code)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Some nodes of a group, each compared with every node of it."""

    rows: range
    """The nodes that are compared."""
    first: int
    """First node of the group."""
    alike: Floats
    """[len(rows), nodes of the group] between 0 and 1; of no use for a node and itself."""


def compare(kinds: Sequence[Sets], node_start: Ints, groups: Ints) -> Iterator[Block]:
    """Yield how alike the nodes of some groups are: the product of Jaccard's index over all kinds.

    The index of two sets is the share of what either has that both have; 1 if both are empty.

    Args:
        kinds: Each of them describes every node by a set.
        node_start: [num_groups + 1] first node of each group.
        groups: The groups whose nodes are compared.
    """
    for group in groups.tolist():
        first, stop = node_start[group : group + 2].tolist()
        members = [_Members.of(sets, first, stop) for sets in kinds]
        width = max(own.bits.shape[1] for own in members)
        height = max(1, _BLOCK // ((stop - first) * width))
        for row in range(first, stop, height):
            rows = range(row, min(row + height, stop))
            alike = np.prod(
                [own.index(rows.start - first, rows.stop - first) for own in members], axis=0
            )
            yield Block(rows=rows, first=first, alike=alike)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Members:
    """The sets of a group's nodes; what one node alone has is counted, and takes no memory."""

    size: Ints
    """[num_nodes] members of each set."""
    bits: Bits
    """[num_nodes, num_words] the members that many nodes have."""
    first: Ints
    """[num_nodes + 1] where each node's members that few nodes have begin."""
    code: Ints
    """[num_rare] their codes, node by node."""
    num_holders: Ints
    """[num_codes] how many nodes have each of these codes."""
    holder: Ints
    """[num_rare] which, code by code."""

    @classmethod
    def of(cls, sets: Sets, first: int, stop: int) -> "_Members":
        own = slice(*np.searchsorted(sets.node, (first, stop)).tolist())
        node = sets.node[own] - first
        code, _ = factorise(sets.code[own])
        num_holders = np.bincount(code)[code]
        is_common = num_holders * _FEW > stop - first
        is_rare = ~is_common & (num_holders > 1)
        bit, common = factorise(code[is_common])
        bits = np.zeros((stop - first, len(common) // _WORD + 1), np.uint64)
        np.bitwise_or.at(bits, (node[is_common], bit // _WORD), _BIT[bit % _WORD])
        rare, _ = factorise(code[is_rare])
        return cls(
            size=np.bincount(node, minlength=stop - first),
            bits=bits,
            first=np.searchsorted(node[is_rare], np.arange(stop - first + 1)),
            code=rare,
            num_holders=np.bincount(rare),
            holder=node[is_rare][np.argsort(rare, kind="stable")],
        )

    def index(self, start: int, stop: int) -> Floats:
        """Return [stop - start, num_nodes] Jaccard's index of some nodes with all."""
        both = np.bitwise_count(self.bits[start:stop, np.newaxis] & self.bits)
        both = both.sum(axis=-1, dtype=np.int64)
        begin, end = self.first[[start, stop]].tolist()
        if begin < end:
            row = np.repeat(np.arange(stop - start), np.diff(self.first[start : stop + 1]))
            owner, place = ranges(self.num_holders, self.code[begin:end])
            pairs = row[owner] * both.shape[1] + self.holder[place]
            both += np.bincount(pairs, minlength=both.size).reshape(both.shape)
        either = self.size[start:stop, np.newaxis] + self.size - both
        return np.divide(both, either, out=np.ones(both.shape), where=either > 0)
