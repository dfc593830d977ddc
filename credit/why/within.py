"""Comparisons within tasks: the difference that a mark makes to outcomes, and how sure it is.

For wins, the difference is that of Mantel and Haenszel (weights n₁n₀/n of each task), and the test
is theirs, with the correction for continuity; for scores, the same weights and the same test, whose
variance is that of all ways to deal the outcomes of a task to its rollouts.

Source: Mantel and Haenszel 1959; Greenland and Robins 1985; Benjamini and Hochberg 1995.
"""

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats, Ints

LEVEL = 0.05
"""False-discovery rate up to which something is beyond chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """What marks make of outcomes; an entry for each mark."""

    effect: Floats
    """Mean outcome with the mark less that without, within tasks; 0 if no task has both."""
    error: Floats
    """Its standard error."""
    z: Floats
    """Standard normal where the mark makes no difference."""
    num_least: Ints
    """Rollouts of the smaller side, in tasks with both sides and with different outcomes."""


def difference(has: Bools, could: Bools, outcome: Floats, group: Ints) -> Difference:
    """Return the difference that each mark makes within groups.

    Args:
        has: [num_marks, num_rollouts].
        could: [num_marks, num_rollouts]: who is compared.
        outcome: [num_rollouts].
        group: [num_rollouts], in order.
    """
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    is_binary = bool(np.isin(outcome, (0.0, 1.0)).all())

    def total(values: Floats | Bools) -> Floats:
        return np.add.reduceat(values.astype(float), starts, axis=1)

    number, marked = total(could), total(has & could)
    rest = number - marked
    share = np.maximum(number, 1)
    sum_marked, sum_all = total((has & could) * outcome), total(could * outcome)
    spread = total(could * outcome**2) - sum_all**2 / share
    weight = marked * rest / share
    gain = sum_marked - marked * sum_all / share
    all_weight = np.maximum(weight.sum(1), 1e-12)
    effect = gain.sum(1) / all_weight
    variance = (weight * spread / np.maximum(number - 1, 1)).sum(1)
    told = (weight > 0) & (spread > 1e-12)
    if is_binary:
        sides = ((marked, sum_marked), (rest, sum_all - sum_marked))
        error = sum(
            _chance_variance((n * (weight > 0)).sum(1), (wins * (weight > 0)).sum(1))
            * (weight**2 / np.maximum(n, 1)).sum(1)
            for n, wins in sides
        )
        error = np.sqrt(error) / all_weight
    else:
        degrees = ((number - 1) * (weight > 0)).sum(1) - 1
        left = (spread * (weight > 0)).sum(1) - effect * gain.sum(1)
        error = np.sqrt(np.maximum(left, 0) / np.maximum(degrees, 1) / all_weight)
    return Difference(
        effect=effect,
        error=error,
        z=_score(gain.sum(1), variance, 0.5 * is_binary),
        num_least=np.minimum((marked * told).sum(1), (rest * told).sum(1)).astype(int),
    )


def _chance_variance(number: Floats, wins: Floats) -> Floats:
    """Return the variance of an outcome; a win and a failure are added, so none is certain."""
    chance = (wins + 1) / (number + 2)
    return chance * (1 - chance)


def _score(gain: Floats, variance: Floats, correction: float) -> Floats:
    size = np.maximum(np.abs(gain) - correction, 0)
    return np.sign(gain) * size / np.sqrt(np.maximum(variance, 1e-12))


def centred(values: Floats, could: Bools | None, group: Ints) -> Floats:
    """Return values less their mean in the group, 0 where nothing is compared.

    Args:
        values: [num_marks, num_rollouts].
        could: [num_marks, num_rollouts]; None if all are compared.
        group: [num_rollouts], in order.
    """
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(starts, append=len(group))
    who = np.ones_like(values) if could is None else could.astype(float)
    mean = np.add.reduceat(values * who, starts, axis=1) / np.maximum(
        np.add.reduceat(who, starts, axis=1), 1
    )
    return (values - np.repeat(mean, sizes, axis=1)) * who


def given(marks: Floats, found: Floats, outcome: Floats, group: Ints, correction: float) -> Floats:
    """Return z of each mark, given those that were found: what they do not explain.

    The variance is the larger of two: that of all ways to deal what is left in a task, and that of
    what is left of each rollout.

    Args:
        marks: [num_marks, num_rollouts], centred.
        found: [num_found, num_rollouts], centred.
        outcome: [num_rollouts], centred.
        group: [num_rollouts], in order.
        correction: Taken off the size of a sum, for continuity.
    """
    basis = np.linalg.qr(found.T)[0]
    left = marks - (marks @ basis) @ basis.T
    rest = outcome - basis @ (basis.T @ outcome)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(starts, append=len(group))
    dealt = np.add.reduceat(left**2, starts, axis=1) @ (
        np.add.reduceat(rest**2, starts) / np.maximum(sizes - 1, 1)
    )
    each = left**2 @ rest**2
    unexplained = (left**2).sum(1) > 0.02 * np.maximum((marks**2).sum(1), 1e-12)
    return _score(left @ rest, np.maximum(dealt, each), correction) * unexplained


def p_values(z: Floats) -> Floats:
    """Return the two-sided probability of a z at least so large."""
    return np.array([erfc(abs(value) / sqrt(2)) for value in z])


def false_discovery(p: Floats, num_tests: int | None = None) -> Floats:
    """Return the least false-discovery rate at which each test is beyond chance.

    Args:
        p: [num_tests]
        num_tests: How many there were, if the rest was not beyond chance.
    """
    order = np.argsort(p)
    total = len(p) if num_tests is None else num_tests
    rate = p[order] * total / np.arange(1, len(p) + 1)
    q = np.empty(len(p))
    q[order] = np.minimum(np.minimum.accumulate(rate[::-1])[::-1], 1)
    return q
