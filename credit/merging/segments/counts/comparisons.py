"""Comparisons of visits: did the same action in the same place have the same result?

Two visits of two trajectories are compared where both are in one cell. A cell of m visits has
m − 1 comparisons, however many pairs.
"""

from dataclasses import dataclass, replace

import numpy as np

from graphcredit.credit.merging.segments.counts.pairs import PairCounts
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

_SEVERAL = 3.0
"""Contradictions that something may be said to explain."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparisons:
    """Comparisons in some cells."""

    two: Floats
    """[n] of visits with two values."""
    two_differ: Floats
    """[n] those with two outcomes."""
    one: Floats
    """[n] of visits with one value."""
    one_differ: Floats
    """[n] those with two outcomes."""

    def added(self, into: Ints, length: int, which: Bools) -> "Comparisons":
        """Return the sums over those of some cells that have the same code."""
        rows = (self.two, self.two_differ, self.one, self.one_differ)
        two, two_differ, one, one_differ = (
            np.bincount(into, np.where(which, row, 0.0), length).astype(np.float64) for row in rows
        )
        return Comparisons(two=two, two_differ=two_differ, one=one, one_differ=one_differ)

    @property
    def unexplained(self) -> Floats:
        """[n] how often visits with one value contradict each other, beside those with two."""
        rate = self.two_differ / np.maximum(self.two, 1)
        return (self.one_differ + rate) / ((self.one + 1) * np.maximum(rate, 1e-9))

    def are_explained(self, share: float) -> Bools:
        """Return [n] whether visits with one value contradict each other too seldom for chance.

        Args:
            share: How few contradictions, and one more, are too few beside those to be expected
                from visits with two values, and one more.
        """
        expected = self.one * self.two_differ / np.maximum(self.two, 1)
        is_rare = self.one_differ + 1 <= share * (expected + 1)
        return (self.two_differ >= _SEVERAL) & is_rare


@dataclass(frozen=True, kw_only=True, slots=True)
class Cells:
    """Visits that show values of some keys, each in a cell of visits that are compared."""

    key: Ints
    """[n] what the value is of."""
    num_keys: int
    visit: Ints
    """[n] where it was seen; a visit has a key once."""
    value: Ints
    """[n] code of the value."""
    cell: Ints
    """[n] from 0, in order of first appearance; a cell is of one key."""
    visits: Visits
    """All visits."""

    @property
    def first(self) -> Ints:
        """[num_cells] where each cell is seen first."""
        return np.unique(self.cell, return_index=True)[1]

    @property
    def owner(self) -> Ints:
        """[num_cells] the key."""
        return self.key[self.first]

    def finer(self, code: Ints) -> "Cells":
        """Return cells in which a code of the visits, [n], is the same, too."""
        return replace(self, cell=factorise_pairs(self.cell, code)[0])

    def compare(self, result: Ints) -> Comparisons:
        """Return [num_cells] the comparisons of a result, [n], of two trajectories."""
        weight = 2 / np.maximum(np.bincount(self.cell), 1)
        total, differing = self._across(self.cell, result)
        one, one_differ = self._across(factorise_pairs(self.cell, self.value)[0], result)
        return Comparisons(
            two=weight * (total - one),
            two_differ=weight * (differing - one_differ),
            one=weight * one,
            one_differ=weight * one_differ,
        )

    def by_key(self, found: Comparisons, which: Bools) -> Comparisons:
        """Return [num_keys] the sums over some cells. `which` is [num_cells]."""
        return found.added(self.owner, self.num_keys, which)

    def _across(self, of: Ints, result: Ints) -> tuple[Floats, Floats]:
        """Return [num_cells] pairs of two trajectories, and those with two results.

        Args:
            of: [n] parts of cells: only visits of one part are a pair.
            result: [n] of each visit.
        """
        totals = np.zeros((2, int(self.cell.max(initial=-1)) + 1))
        trajectory = self.visits.trajectory[self.visit]
        for part, sign in ((of, 1), (factorise_pairs(of, trajectory)[0], -1)):
            found = PairCounts.count(self.key, part, result)
            for row, number in zip(totals, (found.total, found.differing), strict=True):
                row += sign * np.bincount(self.cell[found.first], number, len(row))
        return totals[0], totals[1]
