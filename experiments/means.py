"""Means with confidence intervals: by drawing worlds, games or warm starts again, or Student's t.

All means over as many units use the same draws, so differences are paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS = 10_000
_SEED = 0

_QUANTILES: tuple[float, ...] = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""0.975 quantiles of Student's t with 1, 2, ... degrees of freedom."""


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


def students_t(values: ArrayLike) -> Mean:
    """Return the mean of up to ten numbers with its interval; without bounds for one number."""
    numbers = np.asarray(values, np.float64)
    freedom = len(numbers) - 1
    half = np.inf
    if freedom:
        half = _QUANTILES[freedom - 1] * numbers.std(ddof=1) / np.sqrt(len(numbers))
    value = float(numbers.mean())
    return Mean(value=value, low=float(value - half), high=float(value + half))
