"""Rank correlation of credit with the truth among the steps of one group in one view."""

import numpy as np

from experiments.episodes import Floats, Ints

_DIGITS = 9
"""Smaller differences of the truth are rounding."""


def spearman_within(credit: Floats, truth: Floats, cell: Ints) -> tuple[Floats, Ints]:
    """Return Spearman's correlation within each cell, and its number of steps.

    A cell counts if the truth differs between its steps. A constant credit there is worth 0.

    Args:
        credit: [num_steps].
        truth: [num_steps].
        cell: [num_steps] number of the step's group and view, from 0.

    Returns:
        [num_cells] correlations, NaN for cells that do not count; [num_cells] numbers of steps.
    """
    count = np.bincount(cell)
    x, y = (_centred(ranks_within(values, cell), cell) for values in (credit, truth.round(_DIGITS)))
    both, xx, yy = (np.bincount(cell, product) for product in (x * y, x * x, y * y))
    correlation = np.divide(
        both, np.sqrt(xx * yy), out=np.zeros(len(count)), where=(xx > 0) & (yy > 0)
    )
    return np.where(yy > 0, correlation, np.nan), count


def ranks_within(values: Floats, cell: Ints) -> Floats:
    """Return the rank of each value in its cell from 0; equal values share their mean rank."""
    order = np.lexsort((values, cell))
    sorted_values, sorted_cells = values[order], cell[order]
    is_new_cell = np.diff(sorted_cells, prepend=-1) != 0
    is_new = is_new_cell | (np.diff(sorted_values, prepend=np.nan) != 0)
    rank = np.arange(len(values)) - np.maximum.accumulate(
        np.where(is_new_cell, np.arange(len(values)), 0)
    )
    tie = is_new.cumsum() - 1
    mean = np.bincount(tie, rank) / np.bincount(tie)
    ranks = np.empty(len(values))
    ranks[order] = mean[tie]
    return ranks


def _centred(values: Floats, cell: Ints) -> Floats:
    return values - (np.bincount(cell, values) / np.maximum(np.bincount(cell), 1))[cell]
