"""What comes and goes with the time: a reminder at every fifth turn, a hint for newcomers.

All looks of a group at one time have it, or none has, at whatever state they are. Only pairs of
looks are counted that are not certainly at one state.
"""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs

_ENOUGH = 20.0
"""Pairs at one time that have it, and pairs of which one would have it if time did not matter."""
_GROUPS = 4
"""Groups with such pairs."""
_SELDOM = 0.02
"""Share of these in which only one has it."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of visits that share a code."""

    both: Floats
    """[num_keys] both have the segment."""
    one: Floats
    """[num_keys] one has it."""
    all: Floats
    """[num_groups] all pairs."""


def timed(visits: Visits, visit: Ints, segment: Ints) -> Ints:
    """Return the segments that the time alone decides about, by their codes.

    Args:
        visits: All visits.
        visit: [n] visits, with
        segment: [n] the distinct segments that they have.
    """
    key, group, code = factorise_pairs(visits.group[visit], segment)
    time, group_of_time, _ = factorise_pairs(visits.group, visits.index)
    place, time_of_place, _ = factorise_pairs(time, visits.certain)
    at_one_time = _pairs(time, group_of_time, visit, key, len(group))
    at_one_place = _pairs(place, group_of_time[time_of_place], visit, key, len(group))
    both, one = at_one_time.both - at_one_place.both, at_one_time.one - at_one_place.one
    every = (at_one_time.all - at_one_place.all)[group]
    total, have = np.bincount(visits.group)[group], np.bincount(key)
    rate = have * (total - have) / np.maximum(total * (total - 1) / 2, 1)
    num_codes = int(code.max(initial=-1)) + 1
    sums = [np.bincount(code, own, num_codes) for own in (both, one, rate * every, both > 0)]
    num_both, num_one, expected, groups = sums
    is_enough = (num_both >= _ENOUGH) & (expected >= _ENOUGH) & (groups >= _GROUPS)
    return np.flatnonzero(is_enough & (num_one <= _SELDOM * expected))


def _pairs(share: Ints, group_of: Ints, visit: Ints, key: Ints, num_keys: int) -> _Pairs:
    """Count pairs.

    Args:
        share: [num_visits] codes.
        group_of: [num_codes] the group of each.
        visit: [n] visits, with
        key: [n] a segment in a group that they have.
        num_keys: Keys.
    """
    size = np.bincount(share)
    cell, where, of_key = factorise_pairs(share[visit], key)
    having = np.bincount(cell)
    return _Pairs(
        both=_sums(of_key, having * (having - 1) / 2, num_keys),
        one=_sums(of_key, having * (size[where] - having), num_keys),
        all=_sums(group_of, size * (size - 1) / 2, int(group_of.max(initial=-1)) + 1),
    )


def _sums(into: Ints, values: Ints | Floats, length: int) -> Floats:
    return np.bincount(into, values, length).astype(np.float64)
