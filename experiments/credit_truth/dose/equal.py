"""Give all credits of the same steps an equal dose: as many steps, and as large a sum of |A|.

A step carries credit if its |A| is above `SMALLEST`. In each group all credits keep the same number
of steps: the least number that any of them has there. So a group in which one of them is silent is
silent for all. Which steps a credit keeps is drawn at random from those that carry its credit: the
expected gradient of what is kept is the gradient of all times the share that is kept. (To keep the
largest |A| would change its direction, and differently for each credit.) What is kept is then
scaled so that the sum of |A| of each group that speaks is its number of steps.
"""

from collections.abc import Sequence

import numpy as np

from experiments.credit_truth.world import Bools, Floats, Ints

SMALLEST = 1e-9
"""Smaller |A| is rounding."""


def carries(credit: Floats) -> Bools:
    """Return [num_steps] whether a step carries credit."""
    return np.abs(credit) > SMALLEST


def common_number(compared: Sequence[Floats], group: Ints) -> Ints:
    """Return [num_groups] the least number of steps that carry credit in each group.

    Args:
        compared: [num_steps] advantages of each credit, of the same steps.
        group: [num_steps] group of each step, from 0.
    """
    counts = [np.bincount(group, carries(credit)) for credit in compared]
    return np.min(counts, axis=0).astype(np.int64)


def only_in(credit: Floats, group: Ints, number: Ints) -> Floats:
    """Return the advantages with those groups silenced whose common number is 0."""
    return np.where(number[group] > 0, credit, 0.0)


def equal_dose(credit: Floats, group: Ints, number: Ints, draw: Floats) -> Floats:
    """Return advantages of which each group keeps a number of steps, and whose |A| has mean 1.

    Args:
        credit: [num_steps] advantages; each group has at least `number` steps that carry credit.
        group: [num_steps] group of each step, from 0.
        number: [num_groups] steps to keep.
        draw: [num_steps] random numbers; of the steps that carry credit those with the least are
            kept. With the same numbers, two credits keep the same steps where they can.

    Returns:
        [num_steps] where Σ|A| of a group is its number of steps, or 0 if none is kept.

    Raises:
        ValueError: A group has fewer steps that carry credit.
    """
    speaks = carries(credit)
    if (np.bincount(group, speaks, len(number)) < number).any():
        raise ValueError("a group must have as many steps with credit as are to be kept")
    order = np.lexsort((draw, ~speaks, group))
    first = np.searchsorted(group[order], np.arange(len(number)))
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - first[group[order]]
    kept = np.where(place < number[group], credit, 0.0)
    total = np.bincount(group, np.abs(kept), len(number))
    size = np.bincount(group, minlength=len(number))
    scale = np.divide(size, total, out=np.zeros(len(number)), where=total > 0)
    return kept * scale[group]
