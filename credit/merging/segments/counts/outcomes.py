"""Whether what an action leads to depends on a value in a text, beside the rest of that text.

Two visits of two trajectories are compared where the rest of their texts is the same, and the same
action was taken: its outcome, and the rest of the next text, are the same or not. A cell of m
visits has m − 1 comparisons, however many pairs.

Outcomes may also differ for another reason: chance, or what no text says. Then visits with one
value contradict each other as well, in the cells where outcomes differ at all. Where only visits
with two values do, the value explains the contradictions, and matters.
"""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.counts.comparisons import Cells, Comparisons
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

_ENOUGH = 100.0
_GROUPS = 4
"""Comparisons of two values, and groups, from which it is said that a value does not matter."""
_UNEXPLAINED = 0.4
"""A value explains contradictions if visits with one value have fewer than this share of them."""
_LEAST = 1.0
"""Contradictions that ask for an explanation."""
_SURELY = 0.25
"""What surely matters explains several contradictions, and leaves fewer than this share."""
_OFTEN = 0.25
"""Where a larger share is contradicted, visits with one value must be seen, too."""
_PAST = 3
"""Looks and actions before."""
_ENOUGH_SAME = 10.0
_DEVIATIONS = 3.0
_EXCESS = 0.03
"""With so many comparisons of visits with one value, a value matters, too, if its contradictions
are by so many standard deviations (over groups), and by this share of the comparisons, more than
those of visits with one value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependence:
    """Comparisons for some keys."""

    compared: Floats
    """[num_keys] comparisons of visits with two values."""
    contradicted: Floats
    """[num_keys] those with two outcomes."""
    same: Floats
    """[num_keys] comparisons of visits with one value."""
    groups: Ints
    """[num_keys] groups with comparisons of two values."""
    matters: Bools
    """[num_keys] whether there is reason to think that outcomes depend on the value."""
    surely_matters: Bools
    """[num_keys] whether there is much reason."""
    explains: Bools
    """[num_keys] whether the value seems to explain what all actions lead to, taken together."""

    @property
    def is_idle(self) -> Bools:
        """[num_keys] whether enough was compared to say that no outcome depends on the value."""
        is_enough = (self.compared >= _ENOUGH) & (self.groups >= _GROUPS)
        is_clear = self.contradicted <= _OFTEN * self.compared
        return is_enough & (is_clear | (self.same >= _ENOUGH_SAME)) & ~self.matters


def dependence_on(
    key: Ints, num_keys: int, visit: Ints, value: Ints, rest: Ints, visits: Visits
) -> Dependence:
    """Compare visits.

    Args:
        key: [n] what the value is of.
        num_keys: Keys.
        visit: [n] where it was seen; a visit has a key once.
        value: [n] code of the value.
        rest: [num_visits] equal where the texts are the same without any of the values.
        visits: All visits.
    """
    then = _next_values(key, visit, value, visits)
    has_action = visits.taken[visit] >= 0
    key, visit, value, then = (own[has_action] for own in (key, visit, value, then))
    following = visits.following[visit]
    # Numbered from 1, because the goal, and what is after the last action, has no text.
    result = _pair(visits.outcome[visit], np.where(following >= 0, rest[following] + 1, 0))
    place = _pair(_pair(visits.group[visit], rest[visit]), visits.taken[visit])
    cells = Cells(
        key=key,
        num_keys=num_keys,
        visit=visit,
        value=value,
        cell=_pair(key, place),
        visits=visits,
    )
    every = cells.compare(result)
    owner, first_visit = cells.owner, visit[cells.first]
    is_contradicted = every.two_differ + every.one_differ > 0
    found = cells.by_key(every, np.ones_like(is_contradicted))
    there = cells.by_key(every, is_contradicted)
    # One contradiction at least is left with one value, or the value explains them all.
    is_explained = (there.unexplained < _UNEXPLAINED) | (there.one_differ < 1)
    # Where so few visits with one value are compared, the past may explain them as well.
    if (is_scarce := there.one * there.two_differ < there.two).any():
        is_explained &= ~(is_scarce & _past_explains(cells, is_contradicted, there, result, rest))
    by_action, key_of, _ = factorise_pairs(owner, visits.taken[first_visit])
    of_action = every.added(by_action, len(key_of), is_contradicted)
    by_one_action = np.bincount(key_of, of_action.are_explained(_SURELY), num_keys) > 0
    group = visits.group[first_visit]
    matters = by_one_action | _exceeds(every, owner, num_keys, group) | _drives_itself(cells, then)
    compared_in = factorise_pairs(owner[every.two > 0], group[every.two > 0])[1]
    return Dependence(
        compared=found.two,
        contradicted=found.two_differ,
        same=found.one,
        groups=np.bincount(compared_in, minlength=num_keys),
        matters=matters | ((there.two_differ > _LEAST) & is_explained),
        surely_matters=there.are_explained(_SURELY),
        explains=there.are_explained(_UNEXPLAINED),
    )


def _past_explains(
    cells: Cells, is_contradicted: Bools, there: Comparisons, result: Ints, rest: Ints
) -> Bools:
    """Return [num_keys] whether contradictions are gone where the looks before were the same, too.

    Then the value does not explain them: no action drives it, or it would be the past.

    Args:
        cells: Visits with the same rest and action.
        is_contradicted: [num_cells] whether they have two results.
        there: [num_keys] the comparisons in these cells.
        result: [n] of each visit.
        rest: [num_visits] equal where the texts are the same without any of the values.
    """
    visits, following = cells.visits, cells.visits.following
    before = np.full(len(rest), -1)
    before[following[following >= 0]] = np.flatnonzero(following >= 0)
    rate = there.two_differ / np.maximum(there.two, 1)
    past, found = np.zeros(len(rest), np.int64), np.zeros(len(rate), np.bool_)
    current = before
    for _ in range(_PAST):
        seen = np.where(current >= 0, rest[current] + 1, 0)
        did = np.where(current >= 0, visits.taken[current] + 1, 0)
        past = _pair(past, _pair(seen, did))
        current = np.where(current >= 0, before[current], -1)
        finer = cells.finer(past[cells.visit])
        left = finer.by_key(finer.compare(result), is_contradicted[cells.cell[finer.first]])
        found |= left.two_differ + 1 <= _SURELY * (rate * left.two + 1)
    return found


def _drives_itself(cells: Cells, then: Ints) -> Bools:
    """Return [num_keys] whether it depends on the value, in one place, if an action changes it.

    Such an outcome is left out together with the value. `then` is [n] from `_next_values`.
    """
    stays = cells.compare(((then == 0) | (then == cells.value + 1)).astype(np.int64))
    # The action before is another one after each action, whatever it was.
    depends = cells.compare(then).two_differ > 0
    found = cells.by_key(stays, depends & (stays.two_differ + stays.one_differ > 0))
    is_explained = (found.two_differ > _LEAST) & (found.one_differ < 1)
    return is_explained & (found.one * found.two_differ >= found.two)


def _next_values(key: Ints, visit: Ints, value: Ints, visits: Visits) -> Ints:
    """Return [n] the value of the key at the next visit, from 1; 0 where that does not show it."""
    following, length = visits.following[visit], len(visits.node) + 1
    code = key * length + visit
    order = np.argsort(code)
    wanted = key * length + following
    place = order[np.minimum(np.searchsorted(code[order], wanted), max(len(code) - 1, 0))]
    return np.where((following >= 0) & (code[place] == wanted), value[place] + 1, 0)


def _exceeds(every: Comparisons, owner: Ints, num_keys: int, group: Ints) -> Bools:
    """Return [num_keys] whether visits with two values contradict each other significantly more."""
    everywhere = np.ones(len(owner), np.bool_)
    all_of = every.added(owner, num_keys, everywhere)
    pair, key, _ = factorise_pairs(owner, group)
    part = every.added(pair, len(key), everywhere)
    two, one = np.maximum(all_of.two, 1), np.maximum(all_of.one, 1)
    rate, usual = all_of.two_differ / two, all_of.one_differ / one
    # How much each group moves the difference of the two rates.
    moves = (part.two_differ - rate[key] * part.two) / two[key]
    moves -= (part.one_differ - usual[key] * part.one) / one[key]
    groups = np.bincount(key, minlength=num_keys)
    variance = np.bincount(key, moves**2, num_keys) * groups / np.maximum(groups - 1, 1)
    variance += rate * (1 - rate) / one
    is_enough = (groups > 1) & (all_of.one >= _ENOUGH_SAME)
    return is_enough & (rate - usual > np.maximum(_DEVIATIONS * np.sqrt(variance), _EXCESS))


def _pair(one: Ints, other: Ints) -> Ints:
    return factorise_pairs(one, other)[0]
