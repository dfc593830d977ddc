"""How alike the states of a group are, by sets that describe them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphcredit.credit.arrays import Floats, Ints, factorise

_BLOCK = 1 << 20
"""Pairs of nodes that are compared at a time: bounds the memory, changes no number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sets:
    """A set of codes for each node; nodes without a pair have the empty set."""

    node: Ints
    """[num_pairs] ascending."""
    code: Ints
    """[num_pairs] a member of the node's set; each pair stands here once."""


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
        members = [kind.matrix(group, first, stop) for kind in columns]
        height = max(1, _BLOCK // (stop - first))
        for row in range(first, stop, height):
            rows = range(row, min(row + height, stop))
            own = slice(rows.start - first, rows.stop - first)
            alike = np.prod([_jaccard(matrix[own], matrix) for matrix in members], axis=0)
            yield Block(rows=rows, first=first, alike=alike)


def _jaccard(rows: NDArray[np.float32], columns: NDArray[np.float32]) -> Floats:
    """Return [num_rows, num_columns] the index of sets given as rows of 0 and 1."""
    both = (rows @ columns.T).astype(np.float64)
    either = rows.sum(axis=1)[:, np.newaxis] + columns.sum(axis=1) - both
    return np.divide(both, either, out=np.ones_like(both), where=either > 0)


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
        num_groups, num_codes = len(node_start) - 1, int(sets.code.max(initial=0)) + 1
        group = np.repeat(np.arange(num_groups), np.diff(node_start))[sets.node]
        column, keys = factorise(group * num_codes + sets.code)
        start = np.searchsorted(keys // num_codes, np.arange(num_groups + 1))
        return cls(node=sets.node, column=column, start=start)

    def matrix(self, group: int, first: int, stop: int) -> NDArray[np.float32]:
        """Return [nodes of the group, its codes] 1 where the node's set has the code."""
        own = slice(*np.searchsorted(self.node, (first, stop)).tolist())
        start, end = self.start[group : group + 2].tolist()
        matrix = np.zeros((stop - first, end - start), np.float32)
        matrix[self.node[own] - first, self.column[own] - start] = 1
        return matrix
