"""What visits show of segments: which stay in certain looks at one state, which come and go."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.segments.parse import Segment
from graphcredit.credit.merging.segments.parsed import Parsed
from graphcredit.credit.merging.segments.versions import have_versions
from graphcredit.credit.merging.segments.visits import Visits
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs

CLASSES = 2
"""In so many classes must a segment that is drawn at random come and go."""
SOUND = 0.25
"""Share of the segments of the looks at a state, and of any text, that must stay."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What the visits of the sample show."""

    stays: Counter[Segment] = field(default_factory=Counter[Segment])
    """Classes of two or more visits that all have the segment, or a version of it."""
    comes: Counter[Segment] = field(default_factory=Counter[Segment])
    """Classes of which some visits have it and some have not."""
    drawn: frozenset[Segment] = frozenset()
    """Segments that are there or not at random: classes make no difference (`tally.py`)."""
    num_shared: int = 0
    """Visits in classes of two or more."""
    num_shared_lonely: int = 0
    """Segments there that no other visit of the group has."""
    num_single: int = 0
    """Other visits."""
    num_single_lonely: int = 0
    """Segments there that no other visit of the group has."""


def gather(parsed: Parsed, visits: Visits) -> Evidence:
    """Return what visits show.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
    """
    visit, segment = parsed.of_visits(visits.node)
    size = np.bincount(visits.certain)
    is_shared = size[visits.certain] > 1
    in_class = is_shared[visit]
    pair, owner, code = factorise_pairs(visits.certain[visit[in_class]], segment[in_class])
    having = np.bincount(pair, minlength=len(owner))
    stays = having == size[owner]
    # Where next to nothing stays, each look is a text of its own: it shows no noise.
    lasting = np.bincount(owner, stays * having, len(size)) / np.maximum(
        np.bincount(owner, having, len(size)), 1
    )
    is_sound = lasting[owner] >= SOUND
    owner, code, stays = owner[is_sound], code[is_sound], stays[is_sound]
    versions = have_versions(parsed, visits, owner[~stays], code[~stays])
    counted = {True: Counter[Segment](), False: Counter[Segment]()}
    for number, does_stay in zip(code.tolist(), stays.tolist(), strict=True):
        if does_stay:
            counted[True][parsed.segments[number]] += 1
    for number, is_version in zip(code[~stays].tolist(), versions, strict=True):
        counted[is_version][parsed.segments[number]] += 1
    is_lonely = _lonely(visits.group[visit], segment)
    return Evidence(
        stays=counted[True],
        comes=counted[False],
        drawn=frozenset(parsed.segments[code] for code in _drawn(visits, visit, segment).tolist()),
        num_shared=int(is_shared.sum()),
        num_shared_lonely=int((is_lonely & in_class).sum()),
        num_single=int((~is_shared).sum()),
        num_single_lonely=int((is_lonely & ~in_class).sum()),
    )


def _drawn(visits: Visits, visit: Ints, segment: Ints) -> Ints:
    """Return the segments that are in a look or not as often within classes as across them.

    Args:
        visits: All visits.
        visit: [n] visits, with
        segment: [n] the distinct segments that they have.
    """
    size, num_visits = np.bincount(visits.certain), np.bincount(visits.group)
    group_of_class = np.zeros(len(size), np.int64)
    group_of_class[visits.certain] = visits.group
    pairs = np.bincount(group_of_class, size * (size - 1) / 2, len(num_visits))
    cell, of_class, code = factorise_pairs(visits.certain[visit], segment)
    having = np.bincount(cell)
    differing = having * (size[of_class] - having)
    whole, group, segment_of = factorise_pairs(group_of_class[of_class], code)
    within = np.bincount(whole, differing, len(group))
    have = np.bincount(whole, having, len(group))
    total = num_visits[group]
    across = have * (total - have) - within
    rate = across / np.maximum(total * (total - 1) / 2 - pairs[group], 1)
    observed = np.bincount(segment_of, within)
    expected = np.bincount(segment_of, rate * pairs[group])
    classes = np.bincount(code, differing > 0, len(observed))
    return np.flatnonzero((classes >= CLASSES) & (2 * observed >= expected))


def _lonely(group: Ints, segment: Ints) -> Bools:
    """Return which (group, segment) pairs are there once. [n], from two arrays [n]."""
    pair, _, _ = factorise_pairs(group, segment)
    return np.bincount(pair)[pair] == 1
