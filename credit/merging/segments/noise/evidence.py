"""What classes of certainly equal states show of segments: those that stay, and those that do not.

A class does not count where another version of the segment stands in its place.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.segments.counts.presence import Presence
from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.counts.tally import tally
from graphcredit.credit.merging.segments.counts.timed import timed
from graphcredit.credit.merging.segments.looks.align import LEAST_OVERLAP, Aligner
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import is_word, kind_of
from graphcredit.credit.steps.arrays import Bools, Ints, factorise_pairs

UNKNOWN = "\0"
"""Stands for every word of one segment only."""

LEAST_CLASSES = 2
"""In so many classes must a segment that is drawn at random come and go."""
SOUND = 0.4
"""Share of the words of the looks at a state, and of any text, that must stay."""

_SUSPECT = 3.0
"""Standard deviations from which actions are taken to bring a segment that stays."""
_REPLACED = 0.6
"""Share of the looks without a segment that have another version of it, if it has versions."""
_LOOKS = 8
"""Other looks at a state in which a segment is looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What the visits of the sample show."""

    stays: Counter[Segment] = field(default_factory=Counter[Segment])
    """Classes of two or more visits that all have the segment, or a version of it."""
    comes: Counter[Segment] = field(default_factory=Counter[Segment])
    """Classes of which some visits have it and some have not."""
    drawn: frozenset[Segment] = frozenset()
    """Segments that are there or not at random: classes make no difference (`tally.py`)."""
    timed: frozenset[Segment] = frozenset()
    """Segments that come and go with the time, whatever the state is."""
    brought: frozenset[Segment] = frozenset()
    """Segments that some actions bring, or take away, and that stay in between."""
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
    weight = having * weights(parsed)[code]
    lasting = np.bincount(owner, stays * weight, len(size)) / np.maximum(
        np.bincount(owner, weight, len(size)), 1
    )
    is_sound = lasting[owner] >= SOUND
    owner, code, stays = owner[is_sound], code[is_sound], stays[is_sound]
    versions = _versions(parsed, visits, owner[~stays], code[~stays])
    counted = {True: Counter[Segment](), False: Counter[Segment]()}
    for number, does_stay in zip(code.tolist(), stays.tolist(), strict=True):
        if does_stay:
            counted[True][parsed.segments[number]] += 1
    for number, is_version in zip(code[~stays].tolist(), versions, strict=True):
        counted[is_version][parsed.segments[number]] += 1
    is_lonely = _lonely(visits.group[visit], segment)
    moving = np.isin(parsed.segment, np.unique(code[~stays]))
    return Evidence(
        brought=_brought(parsed.without(~moving), visits),
        stays=counted[True],
        comes=counted[False],
        drawn=frozenset(parsed.segments[code] for code in drawn(visits, visit, segment).tolist()),
        timed=frozenset(
            parsed.segments[code] for code in timed(visits, visit, segment).tolist()
        ).intersection(counted[True]),
        num_shared=int(is_shared.sum()),
        num_shared_lonely=int((is_lonely & in_class).sum()),
        num_single=int((~is_shared).sum()),
        num_single_lonely=int((is_lonely & ~in_class).sum()),
    )


def _brought(parsed: Parsed, visits: Visits) -> frozenset[Segment]:
    """Return the segments that actions bring or take away, of those of some texts."""
    seen = Presence.of(parsed, visits)
    scale = Scale.of([("0",), ("1",)])
    found = tally(seen.key, len(seen.segments), seen.visit, seen.is_there, visits, scale)
    is_driven = found.changes.depend_on_action(len(seen.segments), _SUSPECT)
    brought = np.flatnonzero(is_driven & found.is_sticky).tolist()
    return frozenset(parsed.segments[seen.segments[key]] for key in brought)


def drawn(visits: Visits, visit: Ints, segment: Ints) -> Ints:
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
    return np.flatnonzero((classes >= LEAST_CLASSES) & (2 * observed >= expected))


def _lonely(group: Ints, segment: Ints) -> Bools:
    """Return which (group, segment) pairs are there once. [n], from two arrays [n]."""
    pair, _, _ = factorise_pairs(group, segment)
    return np.bincount(pair)[pair] == 1


def _versions(parsed: Parsed, visits: Visits, owner: Ints, code: Ints) -> list[bool]:
    """Return whether most looks without a segment have another version of it instead.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        owner: [n] classes.
        code: [n] a segment that some but not all of the class's visits have.
    """
    if not len(owner):
        return []
    aligner, lists = Aligner(segments=parsed.segments), parsed.lists()
    order = np.argsort(visits.certain, kind="stable")
    start = np.searchsorted(visits.certain[order], np.arange(int(owner.max()) + 2))
    replaced: list[list[int]] = []
    classes: dict[tuple[int, int], set[int]] = defaultdict(set)
    for of_class, segment in zip(owner.tolist(), code.tolist(), strict=True):
        nodes = visits.node[order[start[of_class] : start[of_class + 1]]].tolist()
        model = next(node for node in nodes if segment in lists[node])
        others = [node for node in nodes if segment not in lists[node]][:_LOOKS]
        versions = [_replacement(aligner, segment, lists[model], lists[node]) for node in others]
        replaced.append(versions)
        for version in versions:
            classes[min(segment, version), max(segment, version)].add(of_class)

    def counts(segment: int, version: int) -> bool:
        if version < 0:
            return False
        pair = (min(segment, version), max(segment, version))
        return aligner.overlap(segment, version) >= LEAST_OVERLAP or len(classes[pair]) > 1

    share = [
        sum(counts(segment, version) for version in versions) / len(versions)
        for segment, versions in zip(code.tolist(), replaced, strict=True)
    ]
    # Two advertisements may meet by chance; what has versions has one in every look. So a segment
    # is judged with all that have the same words.
    totals, numbers = defaultdict[str, float](float), Counter[str]()
    words = [set(masked(parsed.segments[segment])) or {UNKNOWN} for segment in code.tolist()]
    for own, found in zip(words, share, strict=True):
        for word in own:
            totals[word] += found
            numbers[word] += 1
    means = (sum(totals[word] / numbers[word] for word in own) / len(own) for own in words)
    return [mean > _REPLACED for mean in means]


def _replacement(aligner: Aligner, segment: int, model: list[int], other: list[int]) -> int:
    """Return what another text has instead of a segment of a model; -1 if nothing."""
    return next((b for a, b in aligner.match(model, other) if a == segment), -1)


def weights(parsed: Parsed) -> Ints:
    """Return [num_segments] how much each segment says: its words, and one for its address."""
    return np.array([max(len(masked(part)), 1) for part in parsed.segments], np.int64)


def masked(part: Segment) -> list[str]:
    """Return the words by which a segment is judged: digits count as 0."""
    words = [
        "0" if kind_of(token) else token
        for token in part.tokens
        if kind_of(token) or is_word(token)
    ]
    return [part.address, *words] if part.address else words
