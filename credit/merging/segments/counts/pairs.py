"""Pairs of visits whose values are the same or differ: within classes, and across them."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCounts:
    """Pairs of visits with one key in one cell."""

    key: Ints
    """[num_cells]"""
    first: Ints
    """[num_cells] the first record of each cell."""
    total: Floats
    """[num_cells] pairs."""
    differing: Floats
    """[num_cells] pairs with two values."""

    @classmethod
    def count(cls, key: Ints, of: Ints, value: Ints) -> "PairCounts":
        """Count the pairs of each (key, of).

        Args:
            key: [n] what the value is of.
            of: [n] the cell.
            value: [n] code of the value.
        """
        cell, owner, _ = factorise_pairs(key, of)
        filled, cell_of_value, _ = factorise_pairs(cell, value)
        size, same = np.bincount(cell), np.bincount(filled)
        total = size * (size - 1) / 2
        alike = np.bincount(cell_of_value, same * (same - 1) / 2, len(size))
        first = np.unique(cell, return_index=True)[1]
        return cls(key=owner, first=first, total=total, differing=total - alike)


@dataclass(frozen=True, kw_only=True, slots=True)
class Across:
    """Pairs within classes, and pairs across them, in cells that hold several classes."""

    key: Ints
    """[num_cells]"""
    first: Ints
    """[num_cells] the first record of each cell."""
    within: Floats
    """[num_cells] pairs of one class."""
    differing_within: Floats
    """[num_cells] those that differ."""
    across: Floats
    """[num_cells] other pairs."""
    rate: Floats
    """[num_cells] share of these that differ; 0 where there are none."""

    @classmethod
    def count(cls, key: Ints, of: Ints, own: PairCounts, value: Ints) -> "Across":
        """Count the pairs of each (key, of); those of `own` are parts of them."""
        wide = PairCounts.count(key, of, value)
        cell = factorise_pairs(key, of)[0][own.first]
        within = np.bincount(cell, own.total, len(wide.key)).astype(np.float64)
        differing = np.bincount(cell, own.differing, len(wide.key)).astype(np.float64)
        across = wide.total - within
        rate = (wide.differing - differing) / np.maximum(across, 1)
        return cls(
            key=wide.key,
            first=wide.first,
            within=within,
            differing_within=differing,
            across=across,
            rate=rate,
        )
