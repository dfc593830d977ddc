"""Statistics of learning curves, and their uncertainty."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMOOTHED = 3
"""Iterations that are averaged. One has 64 trajectories, and a standard error of six points."""


def smoothed(success: ArrayLike, window: int = SMOOTHED) -> NDArray[np.float64]:
    """Return the mean over an iteration and those before it, `window` in all."""
    values = np.asarray(success, np.float64)
    sums = np.cumsum(np.concatenate([[0.0], values]))
    stop = np.arange(1, len(values) + 1)
    start = np.maximum(stop - window, 0)
    return (sums[stop] - sums[start]) / (stop - start)


def first_at(x: ArrayLike, success: ArrayLike, level: float, window: int = SMOOTHED) -> float:
    """Return the x at which a smoothed curve first reaches a level; infinity if it never does.

    The first `window - 1` iterations do not count, because their averages are incomplete.

    Args:
        x: Environment steps or seconds before each iteration.
        success: Success rate of each iteration.
        level: Success rate to reach.
        window: Iterations that are averaged.
    """
    is_reached = smoothed(success, window) >= level
    is_reached[: window - 1] = False
    reached = np.flatnonzero(is_reached)
    return float(np.asarray(x)[reached[0]]) if len(reached) else float("inf")


def area(x: ArrayLike, success: ArrayLike, budget: float, window: int = SMOOTHED) -> float:
    """Return the mean height of a smoothed curve over a budget of environment steps.

    If success rises, it is below the mean success of the iterations: smoothing delays the curve by
    about an iteration, and iterations with many successes take few steps. After its last iteration,
    a run is assumed to stay at its last value.
    """
    steps = np.asarray(x, float)
    grid = np.unique([0.0, *steps[steps < budget], budget])
    return float(np.trapezoid(np.interp(grid, steps, smoothed(success, window)), grid) / budget)


def coverage(count: int) -> float:
    """Return the confidence that the median lies between the lowest and highest of some numbers.

    It holds for any distribution: all numbers are on one side with probability 2 / 2^count.

    Args:
        count: Number of independent draws.
    """
    return 1 - 2 / 2**count


def paired_test(
    one: Mapping[tuple[int, int], float], other: Mapping[tuple[int, int], float]
) -> float:
    """Return the p-value of a difference between two arms, paired by warm start and seed.

    Under the null hypothesis, both signs of each difference are equally likely; all are tried.

    Args:
        one: (warm, seed) to a number.
        other: The same for another arm.
    """
    pairs = sorted(one.keys() & other.keys())
    gaps = np.array([one[pair] - other[pair] for pair in pairs])
    numbers = np.arange(1 << len(gaps))[:, None]
    signs = 1 - 2 * ((numbers >> np.arange(len(gaps))) & 1)
    return float((np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-12).mean())
