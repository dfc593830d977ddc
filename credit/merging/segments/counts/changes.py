"""Which values some actions change more often than others: such a value is no noise."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs

_SURE = 6.0
"""Standard deviations beyond which actions are taken to change a value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """Pairs of a visit and the next one of its trajectory, after a valid action."""

    key: Ints
    """[num_pairs] what both show."""
    place: Ints
    """[num_pairs] the narrower key under which it was counted."""
    action: Ints
    """[num_pairs] what was done between them."""
    time: Ints
    """[num_pairs] code of the group and of the steps taken before."""
    now: Ints
    """[num_pairs] code of the value."""
    then: Ints
    """[num_pairs] code of the next value."""
    scale: Scale
    """How high each value is."""

    @property
    def differs(self) -> Bools:
        """[num_pairs] whether the values differ."""
        return self.now != self.then

    def depend_on_action(self, num_keys: int, sure: float = _SURE) -> Bools:
        """Return [num_keys] whether some actions change the value more often than others.

        χ² = Σ over actions of (changes − expected)² / variance, where χ² exceeds its mean by so
        many standard deviations; rates are those of the place. Rare actions count as one.
        """
        number = np.bincount(self.place)
        rate = np.bincount(self.place, self.differs) / np.maximum(number, 1)
        cell, place, _ = factorise_pairs(self.place, self.action)
        is_rare = np.bincount(cell) * np.minimum(rate, 1 - rate)[place] < 1
        cell, place, _ = factorise_pairs(self.place, np.where(is_rare[cell], 0, self.action + 1))
        size = np.bincount(cell)
        variance = size * (rate * (1 - rate))[place]
        counts = variance > 0
        square = (np.bincount(cell, self.differs) - size * rate[place]) ** 2
        square = np.where(counts, square / np.where(counts, variance, 1), 0)
        key_of_place = np.zeros(len(rate), np.int64)
        key_of_place[self.place] = self.key
        freedom = np.bincount(place, counts, len(rate)) - 1
        excess = np.where(freedom > 0, np.bincount(place, square, len(rate)) - freedom, 0)
        total = np.bincount(key_of_place, np.maximum(freedom, 0), num_keys)
        return np.bincount(key_of_place, excess, num_keys) > sure * np.sqrt(2 * total)


def changes_of(
    key: Ints, visit: Ints, value: Ints, time: Ints, visits: Visits, scale: Scale
) -> Changes:
    """Return the changes between visits that follow each other.

    Args:
        key: [n] what the value is of.
        visit: [n] where it was seen; a visit has a key once.
        value: [n] code of the value.
        time: [n] code of the group and of the steps taken before.
        visits: All visits.
        scale: Of the values.
    """
    following = np.where(visits.action < 0, -1, visits.following)
    num_visits = len(following) + 1
    record = np.argsort(key * num_visits + visit)
    known = (key * num_visits + visit)[record]
    wanted = key * num_visits + following[visit]
    place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    both = np.flatnonzero((following[visit] >= 0) & (known[place] == wanted))
    return Changes(
        key=key[both],
        place=key[both],
        action=visits.action[visit[both]],
        time=time[both],
        now=value[both],
        then=value[record[place[both]]],
        scale=scale,
    )
