"""Whether a value tells states apart: what visits of one state agree in, and what they do not.

A value that is noise differs as often between two visits of one state as between two visits of
different states. So the disagreements within classes of certainly equal states are compared with
those that pairs across classes, after the same number of steps, lead one to expect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from graphcredit.credit.merging.segments.counts.carried import (
    depend_on_the_last,
    follow_from_actions,
    runs_one_way,
)
from graphcredit.credit.merging.segments.counts.changes import Changes, changes_of
from graphcredit.credit.merging.segments.counts.pairs import Across, PairCounts
from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

_LEAST_RATIO = 0.5
"""Noise has 1, a value that is part of the state 0."""

_LEAST_EXPECTED = 5.0
"""So many pairs must have been expected to differ at one time, if none does."""

_MANY = 5
"""So many times the pairs at one time outweigh them, if they fall short by less than chance."""

_SUSPECT = 3.0
"""Standard deviations from which a value may depend on the last one."""

_DISTINCT = 0.99
"""Share of the pairs of trajectories that have different names."""

_LEAST_MET = 10
"""Of so many pairs."""

_DECIDING = 4.0
"""Standard deviations beyond which a value is taken to decide about success."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueCounts:
    """Counts for some keys; those of several keys add up."""

    disagree: Floats
    """[num_keys] classes in which the value differs."""
    agree: Floats
    """[num_keys] classes of two or more visits in which it does not."""
    observed: Floats
    """[num_keys] pairs of visits of one class and time whose values differ."""
    expected: Floats
    """[num_keys] how many would, if classes did not matter."""
    loose_observed: Floats
    """[num_keys] pairs of visits of one class at any times whose values differ."""
    loose_rate: Floats
    """[num_keys] pairs of visits of different classes whose values differ."""
    loose_pairs: Floats
    """[num_keys] all of these pairs."""
    loose_expected: Floats
    """[num_keys] how many would, if neither classes nor time mattered."""
    same_time: Floats
    """[num_keys] pairs of visits of different classes at one time whose values differ."""
    any_time: Floats
    """[num_keys] how many would, if time did not matter."""

    excess: Floats
    """[num_keys] successes of trajectories that show a high value first, less those expected."""
    variance: Floats
    """[num_keys] of it, if success did not depend on the value."""
    restless: Floats
    """[num_keys] trajectories that show two values."""
    met: Floats
    """[num_keys] pairs of trajectories of a group."""
    apart: Floats
    """[num_keys] those whose first values differ."""
    changes: Changes
    """From one visit to the next."""

    def of(self, key: Ints, num_keys: int) -> "ValueCounts":
        """Return the sums over other keys; `key` is [num_keys of self]."""
        sums = {
            item.name: _total(key, getattr(self, item.name), num_keys)
            for item in fields(self)
            if item.name != "changes"
        }
        return ValueCounts(**sums, changes=replace(self.changes, key=key[self.changes.key]))

    @property
    def is_driven(self) -> Bools:
        """[num_keys] whether some actions change the value more often than others."""
        return self.changes.depend_on_action(len(self.agree))

    @property
    def is_carried(self) -> Bools:
        """[num_keys] whether the value is what it was, or moved on from there."""
        num_keys = len(self.agree)
        kept = self.is_sticky & ~runs_one_way(self.changes, num_keys)
        return kept | depend_on_the_last(self.changes, num_keys)

    @property
    def may_be_carried(self) -> Bools:
        """[num_keys] whether there is reason to think so, if not enough to be sure."""
        return depend_on_the_last(self.changes, len(self.agree), _SUSPECT)

    @property
    def decides(self) -> Bools:
        """[num_keys] whether success depends on the value (Mantel and Haenszel)."""
        return np.abs(self.excess) > _DECIDING * np.sqrt(self.variance)

    @property
    def is_sticky(self) -> Bools:
        """[num_keys] whether the value stays for longer than if it were drawn at every visit."""
        num_keys = len(self.agree)
        number = np.bincount(self.changes.key, minlength=num_keys)
        changed = np.bincount(self.changes.key, self.changes.differs, num_keys)
        drawn = number * self.loose_rate / np.maximum(self.loose_pairs, 1)
        return (drawn >= _LEAST_EXPECTED) & (changed < _LEAST_RATIO * drawn)

    @property
    def is_noise(self) -> Bools:
        """[num_keys] whether the class does not matter."""
        enough = (self.disagree >= 2) | ((self.disagree == 1) & (self.agree == 0))
        least = _LEAST_RATIO * self.expected
        at_time = self.observed >= least
        loose = self.loose_observed >= _LEAST_RATIO * self.loose_expected
        # Few pairs at one time may fall short by chance where many at other times do not.
        nearly = self.observed >= least - np.sqrt(least)
        nearly &= loose & (self.loose_expected >= _MANY * self.expected)
        return enough & np.where(self.expected >= 1, at_time | nearly, loose)

    @property
    def is_free(self) -> Bools:
        """[num_keys] whether neither the class nor the time matters."""
        is_loose = self.loose_observed >= _LEAST_RATIO * self.loose_expected
        return self.is_noise & is_loose & ~self.is_held

    @property
    def is_held(self) -> Bools:
        """[num_keys] whether the value is bound, or stays, or follows from it and the action."""
        follows = follow_from_actions(self.changes, len(self.agree))
        return self.is_bound | self.is_sticky | follows

    @property
    def is_bound(self) -> Bools:
        """[num_keys] whether actions, the value before, or success speak against noise."""
        return self.is_driven | self.is_carried | self.decides

    @property
    def is_name(self) -> Bools:
        """[num_keys] whether each trajectory has a value of its own, from its start to its end."""
        are_distinct = self.apart >= _DISTINCT * self.met
        return (self.met >= _LEAST_MET) & are_distinct & (self.restless == 0)

    @property
    def is_clock(self) -> Bools:
        """[num_keys] whether nothing but the time matters."""
        is_constant = self.same_time <= 0.02 * self.any_time
        return (self.any_time >= _LEAST_EXPECTED) & is_constant & ~self.is_noise

    @property
    def is_state(self) -> Bools:
        """[num_keys] whether there is reason to think that the class matters."""
        varies = (self.loose_expected > 0) & ((self.agree >= 2) | (self.loose_expected >= 1))
        return varies & (self.agree >= 1) & ~self.is_noise & ~self.is_clock


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenValues:
    """What visits show of some keys; the value of a key is all that a visit shows of it."""

    key: Ints
    """[n]"""
    number: Ints
    """[n] how many values the visit shows."""
    visit: Ints
    """[n] where it was seen; a visit has a key once."""
    value: Ints
    """[n] code of the value."""
    texts: list[tuple[str, ...]]
    """Of each code."""


def values_at(
    parsed: Parsed,
    visits: Visits,
    of_segment: Sequence[Sequence[tuple[int, str]]],
    *,
    in_order: bool = False,
    each_once: bool = False,
) -> SeenValues:
    """Return what visits show.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        of_segment: [num_segments] keys with values of each segment.
        in_order: Whether the order in which a visit shows values of one key is a part of them.
        each_once: Whether it says nothing how often a visit shows a value.
    """
    value_of: dict[tuple[str, ...], int] = {}
    of_text: list[list[tuple[int, int, int]]] = []
    for codes in parsed.lists():
        own: dict[int, list[str]] = {}
        for code in codes:
            for key, value in of_segment[code]:
                shown = own.setdefault(key, [])
                if not (each_once and value in shown):
                    shown.append(value)
        of_text.append(
            [
                (key, len(values), value_of.setdefault(tuple(values), len(value_of)))
                for key, found in own.items()
                for values in [found if in_order else sorted(found)]
            ]
        )
    records = [
        (key, number, visit, value)
        for visit, node in enumerate(visits.node.tolist())
        for key, number, value in of_text[node]
    ]
    key, number, visit, value = np.array(records, np.int64).reshape(-1, 4).T.copy()
    return SeenValues(key=key, number=number, visit=visit, value=value, texts=list(value_of))


def observe(
    parsed: Parsed,
    visits: Visits,
    of_segment: Sequence[Sequence[tuple[int, str]]],
    num_keys: int,
    *,
    in_order: bool = False,
) -> ValueCounts:
    """Count what the segments of texts show; the arguments are those of `values_at`.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        of_segment: [num_segments] keys with values of each segment.
        num_keys: Keys.
        in_order: Whether the order in which a visit shows values of one key is a part of them.
    """
    seen = values_at(parsed, visits, of_segment, in_order=in_order)
    # Visits that show a key more or less often are not compared: that is another matter.
    cell, key_of_cell, _ = factorise_pairs(seen.key, seen.number)
    scale = Scale.of(seen.texts)
    found = tally(cell, len(key_of_cell), seen.visit, seen.value, visits, scale)
    return found.of(key_of_cell, num_keys)


def tally(
    key: Ints, num_keys: int, visit: Ints, value: Ints, visits: Visits, scale: Scale
) -> ValueCounts:
    """Count.

    Args:
        key: [n] what the value is of.
        num_keys: Keys.
        visit: [n] where it was seen; a visit has a key once.
        value: [n] code of the value.
        visits: All visits.
        scale: How high each value is.
    """
    certain, group = visits.certain[visit], visits.group[visit]
    time = factorise_pairs(group, visits.index[visit])[0]
    own = PairCounts.count(key, certain, value)
    loose = Across.count(key, group, own, value)
    timed = PairCounts.count(key, factorise_pairs(time, certain)[0], value)
    tight = Across.count(key, time, timed, value)
    group_of_cell = factorise_pairs(key, group)[0][tight.first]

    def total(of: Ints, amounts: Floats | Bools) -> Floats:
        return _total(of, amounts, num_keys)

    first, excess, variance = _successes(key, visit, scale.rank[value], visits)
    many, meeting = _trajectories(key, visit, value, visits)
    is_matched = tight.across > 0
    return ValueCounts(
        disagree=total(own.key, own.differing > 0),
        agree=total(own.key, (own.total > 0) & (own.differing == 0)),
        observed=total(tight.key, tight.differing_within * is_matched),
        expected=total(tight.key, tight.rate * tight.within),
        loose_observed=total(loose.key, loose.differing_within),
        loose_rate=total(loose.key, loose.rate * loose.across),
        loose_pairs=total(loose.key, loose.across),
        loose_expected=total(loose.key, loose.rate * loose.within),
        same_time=total(tight.key, tight.rate * tight.across),
        any_time=total(tight.key, loose.rate[group_of_cell] * tight.across),
        excess=total(first, excess),
        variance=total(first, variance),
        restless=total(many.key, many.differing > 0),
        met=total(meeting.key, meeting.total),
        apart=total(meeting.key, meeting.differing),
        changes=changes_of(key, visit, value, time, visits, scale),
    )


def _trajectories(
    key: Ints, visit: Ints, value: Ints, visits: Visits
) -> tuple[PairCounts, PairCounts]:
    """Count pairs of visits of a trajectory, and pairs of trajectories of a group."""
    of = visits.trajectory[visit]
    start = np.unique(factorise_pairs(key, of)[0], return_index=True)[1]
    groups = visits.group[visit[start]]
    own = PairCounts.count(key, of, value)
    return own, PairCounts.count(key[start], groups, value[start])


def _successes(key: Ints, visit: Ints, rank: Floats, visits: Visits) -> tuple[Ints, Floats, Floats]:
    """Compare trajectories of one group whose first visit with a key is at one time.

    Returns:
        The key of each stratum of them, how many more of those with a value above the mean succeed
        than expected, and the variance of that.
    """
    order = np.lexsort((visits.index[visit], visits.trajectory[visit], key))
    of = key[order] * (int(visits.trajectory.max(initial=0)) + 1) + visits.trajectory[visit[order]]
    rows = order[np.unique(of, return_index=True)[1]]
    time = factorise_pairs(visits.group[visit[rows]], visits.index[visit[rows]])[0]
    stratum, owner, _ = factorise_pairs(key[rows], time)
    size = np.bincount(stratum, minlength=len(owner)).astype(np.float64)
    mean = np.bincount(stratum, rank[rows], len(owner)) / np.maximum(size, 1)
    is_high, succeeds = rank[rows] > mean[stratum], visits.succeeds[visit[rows]]
    high = np.bincount(stratum, is_high, len(owner))
    won = np.bincount(stratum, succeeds, len(owner))
    both = np.bincount(stratum, is_high & succeeds, len(owner))
    share = high * won / np.maximum(size, 1)
    spread = share * (size - high) * (size - won) / np.maximum(size * (size - 1), 1)
    return owner, both - share, spread


def _total(of: Ints, amounts: Floats | Bools, length: int) -> Floats:
    return np.bincount(of, amounts, length).astype(np.float64)
