"""Means with bootstrap confidence intervals, which draw worlds, games or warm starts again.

All means over as many units use the same draws, so differences are paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
_SEED = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Mean:
    """The mean of a number over units."""

    value: float
    """NaN if no unit has the number."""
    low: float
    high: float
    """95 % confidence interval."""


def mean(values: Sequence[float | None]) -> Mean:
    """Return the mean over the units that have a number, and its interval.

    Args:
        values: One for each unit, None if it has none; always in the same order of units.
    """
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    known = np.isfinite(numbers)
    if not known.any():
        return Mean(value=np.nan, low=np.nan, high=np.nan)
    times = _times_drawn(len(numbers))
    sums, counts = times @ np.where(known, numbers, 0.0), times @ known
    low, high = np.quantile(sums[counts > 0] / counts[counts > 0], [0.025, 0.975])
    return Mean(value=float(numbers[known].mean()), low=float(low), high=float(high))


@cache
def _times_drawn(num_units: int) -> NDArray[np.float64]:
    """Return [DRAWS, num_units] how often each unit is drawn."""
    even = np.full(num_units, 1 / num_units)
    drawn = np.random.default_rng(_SEED).multinomial(num_units, even, size=DRAWS)
    return drawn.astype(np.float64)
