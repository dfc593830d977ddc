"""Group-relative values: the only home of normalisation, singletons and zero variance.

    rel(x; G) = (x - mean_G) / (std_G + 1e-6)

with the sample standard deviation (n - 1), in float64. A group of one gives 0. Equal values give 0,
and so does a value at the mean: exactly, also where rounding made them differ in the last digits.
"""

from typing import Literal, TypeAlias

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.store.schema import ROUNDING

Normalize: TypeAlias = Literal["std", "none"]
"""`"std"` divides by the standard deviation, `"none"` only subtracts the mean."""

StatOver: TypeAlias = Literal["trajectories", "steps"]
"""Whether a trajectory counts once or once per step in the statistics of its group."""

StdOf: TypeAlias = Literal["sample", "population"]
"""Whether the variance is over n - 1 or over n."""

EPSILON = 1e-6


def relative(
    values: Floats,
    group_of_item: Ints,
    num_groups: int,
    *,
    normalize: Normalize = "std",
    weights: Floats | None = None,
    std_of: StdOf = "sample",
) -> Floats:
    """Return rel(x; G) of every item.

    Args:
        values: [n] x.
        group_of_item: [n] group of each item, in 0 … num_groups-1.
        num_groups: Number of groups; some may be empty.
        normalize: "std", or "none" for a divisor of 1.
        weights: [n] how often an item counts in mean and std; once by default.
        std_of: Which standard deviation; only HGPO wants the population's.

    Returns:
        [n] float64.
    """
    offset, spread, rounding = _offset_from_first(values, group_of_item, num_groups)
    weight = np.ones(len(values)) if weights is None else weights
    count = np.bincount(group_of_item, weight, num_groups)
    mean = np.bincount(group_of_item, weight * offset, num_groups) / np.maximum(count, 1)
    centred = offset - mean[group_of_item]
    centred[np.abs(centred) <= rounding[group_of_item]] = 0.0
    divisor = np.ones(num_groups)
    if normalize == "std":
        squares = np.bincount(group_of_item, weight * centred**2, num_groups)
        freedom = count - 1 if std_of == "sample" else count
        divisor = np.sqrt(squares / np.maximum(freedom, 1)) + EPSILON
    scale = np.where(spread, 1 / divisor, 0.0)
    return centred * scale[group_of_item]


def relative_to_others(values: Floats, group_of_item: Ints, num_groups: int) -> Floats:
    """Return x minus the mean of the *other* items of its group; alone in its group: 0.

    Args and Returns: as `relative`.
    """
    offset, spread, _ = _offset_from_first(values, group_of_item, num_groups)
    count = np.bincount(group_of_item, minlength=num_groups)
    total = np.bincount(group_of_item, offset, num_groups)
    size = count[group_of_item]
    others = (total[group_of_item] - offset) / np.maximum(size - 1, 1)
    return np.where(spread[group_of_item], offset - others, 0.0)


def has_spread(values: Floats, group_of_item: Ints, num_groups: int) -> Bools:
    """Return whether the values of each group differ. [num_groups]."""
    return _offset_from_first(values, group_of_item, num_groups)[1]


def _offset_from_first(
    values: Floats, group_of_item: Ints, num_groups: int
) -> tuple[Floats, Bools, Floats]:
    """Return values near 0, and what in them counts as different.

    Taking the first value off keeps large equal parts from costing precision.

    Returns:
        [n] each value minus the first of its group, [num_groups] whether the values differ, and
        [num_groups] what may be rounding alone.
    """
    first = np.zeros(num_groups)
    first[group_of_item[::-1]] = values[::-1]
    offset = values - first[group_of_item]
    largest_offset, largest = np.zeros(num_groups), np.zeros(num_groups)
    np.maximum.at(largest_offset, group_of_item, np.abs(offset))
    np.maximum.at(largest, group_of_item, np.abs(values))
    rounding = ROUNDING * largest
    return offset, largest_offset > rounding, rounding
