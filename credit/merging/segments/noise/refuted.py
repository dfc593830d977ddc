"""Noise that outcomes speak against: it tells states apart, after all.

Certain looks differ in what is drawn anew at every look, whether it matters or not: the price of
today matters to who sells. So what was found to be noise is tested once more, by what actions lead
to (`counts/outcomes.py`): the values that are left out of each segment, and the presence of each
segment that comes and goes, and how high a number is. What surely matters stays as it is.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from graphcredit.credit.merging.segments.counts.carried import runs_one_way
from graphcredit.credit.merging.segments.counts.changes import changes_of
from graphcredit.credit.merging.segments.counts.outcomes import dependence_on
from graphcredit.credit.merging.segments.counts.presence import Presence
from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.counts.tally import SeenValues, values_at
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import is_number
from graphcredit.credit.steps.arrays import Ints, factorise_pairs

_STEPS = 8
_LEAST_ON_STEP = 3
"""Numbers are put on so many steps, if there are so many different ones for each."""
_WHOLE = -1
"""A segment as a whole, where words of other lengths stand for each other."""


def refuted(
    parsed: Parsed,
    visits: Visits,
    base: Callable[[Segment], Segment],
    read: Callable[[Segment], Segment],
    rest: Ints,
    dropped: Parsed,
) -> frozenset[Segment]:
    """Return segments, as they are read, of which something matters that was left out.

    Args:
        parsed: The texts of the nodes, as they are.
        visits: All visits of these nodes.
        base: Returns a segment before values and words are left out.
        read: Returns what is left of it.
        rest: [num_visits] equal where nothing is left to tell texts apart.
        dropped: The segments that come and go.
    """
    keys, of_segment = _left_out(parsed, base, read)
    seen = values_at(parsed, visits, of_segment)
    scale = Scale.of(seen.texts)
    # What runs with the time seems to explain a past that no text tells.
    changes = changes_of(seen.key, seen.visit, seen.value, visits.index[seen.visit], visits, scale)
    is_clock = runs_one_way(changes, len(keys))
    steps = _steps(seen, scale, len(keys))
    presence = Presence.of(dropped, visits)
    come = [dropped.segments[code] for code in presence.segments]
    found = dependence_on(
        np.concatenate([seen.key, steps.key, 2 * len(keys) + presence.key]),
        2 * len(keys) + len(come),
        np.concatenate([seen.visit, steps.visit, presence.visit]),
        np.concatenate([seen.value, steps.value, presence.is_there]),
        rest,
        visits,
    )
    matters = found.surely_matters & ~np.concatenate(
        [is_clock, is_clock, np.zeros(len(come), np.bool_)]
    )
    return frozenset(
        part for part, does in zip([*keys, *keys, *come], matters.tolist(), strict=True) if does
    )


def _steps(seen: SeenValues, scale: Scale, num_keys: int) -> SeenValues:
    """Return on which of a few steps numbers are, from low to high; keys begin at `num_keys`.

    Two visits hardly ever show one number of milliseconds, but its size may matter.
    """
    are_numbers = [len(own) == 1 and is_number(own[0]) for own in seen.texts]
    rows = np.flatnonzero(np.array(are_numbers, np.bool_)[seen.value])
    rows = rows[np.lexsort((scale.rank[seen.value[rows]], seen.key[rows]))]
    key, value = seen.key[rows], seen.value[rows]
    number, owner, _ = factorise_pairs(key, value)
    first = np.unique(number, return_index=True)[1]
    start = np.unique(key, return_index=True)[1]
    count = np.bincount(key, minlength=num_keys)
    begins = np.zeros(num_keys, np.int64)
    begins[key[start]] = start
    step = _STEPS * (first[number] - begins[key]) // np.maximum(count[key], 1)
    varies = (np.bincount(owner, minlength=num_keys) >= _STEPS * _LEAST_ON_STEP)[key]
    return SeenValues(
        key=num_keys + key[varies],
        number=np.ones(int(varies.sum()), np.int64),
        visit=seen.visit[rows[varies]],
        value=step[varies],
        texts=[],
    )


def _left_out(
    parsed: Parsed, base: Callable[[Segment], Segment], read: Callable[[Segment], Segment]
) -> tuple[list[Segment], list[list[tuple[int, str]]]]:
    """Return what is left of segments, and which of these and which values each segment has."""
    bases = [base(part) for part in parsed.segments]
    ends = [read(part) for part in parsed.segments]
    values: dict[tuple[Segment, int], set[str]] = defaultdict(set)
    found = [_values(one, end) for one, end in zip(bases, ends, strict=True)]
    for end, own in zip(ends, found, strict=True):
        for position, value in own:
            values[end, position].add(value)
    vary = sorted(place for place, own in values.items() if len(own) > 1)
    number = {place: key for key, place in enumerate(vary)}
    of_segment = [
        [(number[end, at], value) for at, value in own if (end, at) in number]
        for end, own in zip(ends, found, strict=True)
    ]
    return [end for end, _ in vary], of_segment


def _values(base: Segment, end: Segment) -> list[tuple[int, str]]:
    """Return the tokens that something else stands for, each with its position."""
    if not (end.tokens or end.address):
        return []
    if len(base.tokens) != len(end.tokens):
        return [(_WHOLE, " ".join(base.tokens))]
    # The value of a place may be what stands for all of them.
    return list(enumerate(base.tokens))
