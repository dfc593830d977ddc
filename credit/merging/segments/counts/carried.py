"""Which values depend on the last one: they are carried along, as a part of the state is.

What is drawn anew at every look says nothing of the next look. What moves on from where it was,
such as somebody who walks about, or what was dealt and stays, does. Trajectories of one group are
compared at one time, so that what runs with the time is not taken for what is carried. Numbers that
only ever rise or only ever fall, as clocks and batteries do, are not judged.

Two statistics, each summed over all (group, time) and divided by its standard deviation if the next
values were dealt to the trajectories at random:

    Σ over trajectories (x − x̄)(y − ȳ)                     of the ranks x now and y at the next look
    Σ over pairs of trajectories [x equal] · [y equal]     for values without an order

Source of the second: Mantel (1967); its variance from Cliff and Ord (1981).
"""

import numpy as np

from graphcredit.credit.merging.segments.counts.changes import Changes
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

_SURE = 5.0
"""Standard deviations beyond which a value is taken to depend on the last one."""

_ONE_WAY = 0.02
"""Share of the changes of a clock that go the other way."""

_LEAST = 4
"""Trajectories at one time; the variance over pairs needs so many."""


def depend_on_the_last(changes: Changes, num_keys: int, sure: float = _SURE) -> Bools:
    """Return [num_keys] whether the next value depends on this one.

    Args:
        changes: From one visit to the next.
        num_keys: Keys.
        sure: Standard deviations beyond which it does.
    """
    stratum, place, _ = factorise_pairs(changes.place, changes.time)
    key_of_place = np.zeros(int(changes.place.max(initial=-1)) + 1, np.int64)
    key_of_place[changes.place] = changes.key
    key = key_of_place[place]
    found = np.zeros(num_keys, bool)
    for statistic in (_moving, _agreeing):
        excess, variance = statistic(changes, stratum, len(key))
        spread = np.sqrt(np.bincount(key, variance, num_keys))
        found |= np.bincount(key, excess, num_keys) > sure * np.maximum(spread, 1e-9)
    return found & ~runs_one_way(changes, num_keys)


def follow_from_actions(changes: Changes, num_keys: int) -> Bools:
    """Return [num_keys] whether the next value depends on this one and the action, at any time.

    Only for values that do not run with the time.
    """
    stratum, place, _ = factorise_pairs(changes.place, changes.action)
    key_of_place = np.zeros(int(changes.place.max(initial=-1)) + 1, np.int64)
    key_of_place[changes.place] = changes.key
    key = key_of_place[place]
    excess, variance = _agreeing(changes, stratum, len(key))
    spread = np.sqrt(np.bincount(key, variance, num_keys))
    # Where all values are one, sums are 0 but for their last digits.
    return np.bincount(key, excess, num_keys) > _SURE * np.maximum(spread, 1e-3)


def runs_one_way(changes: Changes, num_keys: int) -> Bools:
    """Return [num_keys] whether the value is a measure that changes in one direction only."""
    scale = changes.scale
    step = np.sign(scale.rank[changes.then] - scale.rank[changes.now])
    step *= scale.has_digits[changes.now] & scale.has_digits[changes.then]
    up = np.bincount(changes.key, step > 0, num_keys)
    down = np.bincount(changes.key, step < 0, num_keys)
    return (up + down > 0) & (np.minimum(up, down) <= _ONE_WAY * (up + down))


def _moving(changes: Changes, stratum: Ints, num_strata: int) -> tuple[Floats, Floats]:
    """Return [num_strata] the covariation of the ranks, and its variance."""
    size = np.bincount(stratum, minlength=num_strata)
    ranks = [changes.scale.rank[codes] for codes in (changes.now, changes.then)]
    now, then = (
        rank - (np.bincount(stratum, rank, num_strata) / np.maximum(size, 1))[stratum]
        for rank in ranks
    )
    excess, of_now, of_then = (
        np.bincount(stratum, product, num_strata).astype(np.float64)
        for product in (now * then, now**2, then**2)
    )
    return excess, of_now * of_then / np.maximum(size - 1, 1)


def _agreeing(changes: Changes, stratum: Ints, num_strata: int) -> tuple[Floats, Floats]:
    """Return [num_strata] ordered pairs that agree twice, less those expected; its variance."""
    size = np.bincount(stratum, minlength=num_strata)
    n = np.maximum(size, _LEAST).astype(np.float64)
    a0, a1, a2 = _moments(stratum, changes.now, num_strata)
    b0, b1, b2 = _moments(stratum, changes.then, num_strata)
    cell, owner, _ = factorise_pairs(stratum, changes.now)
    both, cell_of_both, _ = factorise_pairs(cell, changes.then)
    number = np.bincount(both)
    agree = np.bincount(owner[cell_of_both], number * (number - 1), num_strata)
    expected = a0 * b0 / (n * (n - 1))
    variance = (
        a1 * b1 / (2 * n * (n - 1))
        + (a2 - 2 * a1) * (b2 - 2 * b1) / (4 * n * (n - 1) * (n - 2))
        + (a0**2 + a1 - a2) * (b0**2 + b1 - b2) / (n * (n - 1) * (n - 2) * (n - 3))
        - expected**2
    )
    is_enough = size >= _LEAST
    return (agree - expected) * is_enough, np.maximum(variance, 0) * is_enough


def _moments(stratum: Ints, value: Ints, num_strata: int) -> tuple[Floats, Floats, Floats]:
    """Return [num_strata] the sums S0, S1 and S2 of the matrix that says who agrees with whom."""
    cell, owner, _ = factorise_pairs(stratum, value)
    number = np.bincount(cell)
    pairs, squares = (
        np.bincount(owner, number * (number - 1) ** power, num_strata).astype(np.float64)
        for power in (1, 2)
    )
    return pairs, 2 * pairs, 4 * squares
