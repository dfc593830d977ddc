"""What is read off learning curves, and how sure it is."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMOOTHED = 3
"""Iterations that are averaged: one has 64 trajectories, and a standard error of six points."""


def smoothed(success: ArrayLike, window: int = SMOOTHED) -> NDArray[np.float64]:
    """Return the mean over an iteration and those before it, `window` in all."""
    values = np.asarray(success, np.float64)
    sums = np.cumsum(np.concatenate([[0.0], values]))
    stop = np.arange(1, len(values) + 1)
    start = np.maximum(stop - window, 0)
    return (sums[stop] - sums[start]) / (stop - start)


def first_at(x: ArrayLike, success: ArrayLike, level: float, window: int = SMOOTHED) -> float:
    """Return where a smoothed curve first reaches a level; infinity where it never does.

    Nowhere before as many iterations as are averaged.

    Args:
        x: Environment steps or seconds before each iteration.
        success: Success rate of each iteration.
        level: Of success.
        window: Iterations that are averaged.
    """
    is_reached = smoothed(success, window) >= level
    is_reached[: window - 1] = False
    reached = np.flatnonzero(is_reached)
    return float(np.asarray(x)[reached[0]]) if len(reached) else float("inf")


def area(x: ArrayLike, success: ArrayLike, budget: float, window: int = SMOOTHED) -> float:
    """Return the mean height of a smoothed curve over a budget of environment steps.

    It is below the mean success of the iterations where success rises: smoothing delays it by about
    an iteration, and iterations of many successes take few steps. After its last iteration a run
    is taken to stay as it was.
    """
    steps = np.asarray(x, float)
    grid = np.unique([0.0, *steps[steps < budget], budget])
    return float(np.trapezoid(np.interp(grid, steps, smoothed(success, window)), grid) / budget)


def coverage(count: int) -> float:
    """Return how surely the median lies between the lowest and the highest of some numbers.

    Of any distribution: all are on one side of it with probability 2 / 2^count.

    Args:
        count: Numbers that were drawn independently.
    """
    return 1 - 2 / 2**count


def paired_test(
    one: Mapping[tuple[int, int], float],
    other: Mapping[tuple[int, int], float],
    *,
    draws: int = 100_000,
    seed: int = 0,
) -> float:
    """Return the p-value of a difference between two arms, paired by warm start and seed.

    Under the null hypothesis either sign of each difference is as likely; all signs are tried where
    there are few, and drawn where there are many.

    Args:
        one: (warm, seed) to a number.
        other: The same of another arm.
        draws: Of signs.
        seed: Of the draws.
    """
    pairs = sorted(one.keys() & other.keys())
    gaps = np.array([one[pair] - other[pair] for pair in pairs])
    if len(gaps) <= 16:
        numbers = np.arange(1 << len(gaps))[:, None]
        signs = 1 - 2 * ((numbers >> np.arange(len(gaps))) & 1)
    else:
        random = np.random.default_rng(seed)
        signs = random.choice([-1, 1], size=(draws, len(gaps)))
    means = np.abs(signs @ gaps)
    return float((means >= abs(gaps.sum()) - 1e-12).mean())
