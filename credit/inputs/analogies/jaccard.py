"""How alike the states of a group are, by sets that describe them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

Bits: TypeAlias = NDArray[np.uint64]
"""[num_nodes, num_words] a set as the bits of some words."""

_WORD = 64
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Some nodes of a group, each compared with every node of it."""

    rows: range
    """The nodes that are compared."""
    first: int
    """First node of the group."""
    alike: Floats
    """[len(rows), nodes of the group] between 0 and 1."""


def compare(kinds: Sequence[Sets], node_start: Ints, groups: Ints) -> Iterator[Block]:
    """Yield how alike the nodes of some groups are: the product of Jaccard's index over all kinds.

    The index of two sets is the share of what either has that both have; 1 if both are empty.

    Args:
        kinds: Each of them describes every node by a set.
        node_start: [num_groups + 1] first node of each group.
        groups: The groups whose nodes are compared.
    """
    columns = [_Columns.of(sets, node_start) for sets in kinds]
    for group in groups.tolist():
        first, stop = node_start[group : group + 2].tolist()
        members = [kind.bits(group, first, stop) for kind in columns]
        width = max(bits.shape[1] for bits in members)
        height = max(1, _BLOCK // ((stop - first) * width))
        for row in range(first, stop, height):
            rows = range(row, min(row + height, stop))
            own = slice(rows.start - first, rows.stop - first)
            alike = np.prod([_jaccard(bits[own], bits) for bits in members], axis=0)
            yield Block(rows=rows, first=first, alike=alike)


def _jaccard(rows: Bits, columns: Bits) -> Floats:
    """Return [num_rows, num_columns] the index of each two sets."""
    both = _size(rows[:, np.newaxis] & columns)
    either = _size(rows)[:, np.newaxis] + _size(columns) - both
    return np.divide(both, either, out=np.ones(both.shape), where=either > 0)


def _size(sets: Bits) -> Ints:
    """Return the number of members of each set; the last axis is the words of one."""
    return np.bitwise_count(sets).sum(axis=-1, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Columns:
    """Sets with their codes numbered group by group."""

    node: Ints
    column: Ints
    """[num_pairs] the codes of a group are consecutive."""
    start: Ints
    """[num_groups + 1] first column of each group."""

    @classmethod
    def of(cls, sets: Sets, node_start: Ints) -> "_Columns":
        num_groups = len(node_start) - 1
        group = np.repeat(np.arange(num_groups), np.diff(node_start))[sets.node]
        column, group_of_column, _ = factorise_pairs(group, sets.code)
        start = np.searchsorted(group_of_column, np.arange(num_groups + 1))
        return cls(node=sets.node, column=column, start=start)

    def bits(self, group: int, first: int, stop: int) -> Bits:
        """Return the sets of a group's nodes; the group's codes number the bits."""
        own = slice(*np.searchsorted(self.node, (first, stop)).tolist())
        start, end = self.start[group : group + 2].tolist()
        is_member = np.zeros((stop - first, ((end - start) // _WORD + 1) * _WORD), bool)
        is_member[self.node[own] - first, self.column[own] - start] = True
        return np.packbits(is_member, axis=1).view(np.uint64)
