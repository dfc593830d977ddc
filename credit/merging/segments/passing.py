"""Segments that come and go while the state stays: advertisements, hints, greetings.

A segment is noise if it came and went in more classes of certainly equal states than it stayed in,
or as often as if these classes made no difference.
A class does not count where another version of the segment stands in its place. One that no class
shows is judged by its words and by whether it recurs in its group:

    score = Σ over its words of log((n + p) / (N + 1)) − log((m + p) / (M + 1))
            + log(a / b) if no other visit of the group has it

n of the N words of noise segments and m of the M words of the others are this one, p is its share
of all of them; digits count as 0, and words of one segment only as one unknown word. a is how many
segments that come and go and that no other visit has are in a visit of a class of two or more, and
b how many more such segments other visits have. It is noise if the score exceeds log 20.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from graphcredit.credit.merging.segments.align import LEAST_OVERLAP, Aligner
from graphcredit.credit.merging.segments.parse import Segment
from graphcredit.credit.merging.segments.parsed import Parsed
from graphcredit.credit.merging.segments.tokens import is_word, kind_of
from graphcredit.credit.merging.segments.visits import Visits
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs

_UNKNOWN = "\0"
_LEAST_SCORE = math.log(20)
"""How much likelier than not a segment without evidence must be noise."""

_LASTING = 0.4
"""How often a part of a state is there at the next visit, too."""

_CLASSES = 2
"""In so many classes must a segment that is drawn at random come and go."""
_REPLACED = 0.6
"""Share of the looks without a segment that have another version of it, if it has versions."""
_SOUND = 0.25
"""Share of the segments of the looks at a state, and of any text, that must stay."""
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
    is_sound = lasting[owner] >= _SOUND
    owner, code, stays = owner[is_sound], code[is_sound], stays[is_sound]
    versions = _versions(parsed, visits, owner[~stays], code[~stays])
    counted = {True: Counter[Segment](), False: Counter[Segment]()}
    for number, does_stay in zip(code.tolist(), stays.tolist(), strict=True):
        if does_stay:
            counted[True][parsed.segments[number]] += 1
    for number, is_version in zip(code[~stays].tolist(), versions, strict=True):
        counted[is_version][parsed.segments[number]] += 1
    is_lonely = lonely(visits.group[visit], segment)
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
    return np.flatnonzero((classes >= _CLASSES) & (2 * observed >= expected))


def lonely(group: Ints, segment: Ints) -> Bools:
    """Return which (group, segment) pairs are there once. [n], from two arrays [n]."""
    pair, _, _ = factorise_pairs(group, segment)
    return np.bincount(pair)[pair] == 1


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recurrence:
    """How often the segments of a group are seen again there."""

    key: Ints
    """[n] group · number of segments + segment, ascending."""
    is_once: Bools
    """[n] whether one visit has it."""
    lasting: Floats
    """[n] how much likelier a part of a state stays as often from one visit to the next."""

    @classmethod
    def count(cls, parsed: Parsed, visits: Visits) -> "_Recurrence":
        visit, segment = parsed.of_visits(visits.node)
        num_segments = max(len(parsed.segments), 1)
        order = np.lexsort((visits.index, visits.trajectory))
        place = np.empty(len(order), np.int64)
        # Trajectories have a gap between them: the last visit of one is before no other.
        place[order] = np.arange(len(order)) + visits.trajectory[order]
        here = place[visit] * num_segments + segment
        follows = np.isin(here + num_segments, here)
        key, of_key = np.unique(visits.group[visit] * num_segments + segment, return_inverse=True)
        number = np.bincount(of_key, minlength=len(key))
        share = number / np.bincount(visits.group)[key // num_segments]
        stays = np.bincount(of_key, follows, len(key))
        lasting = (stays * np.log(np.maximum(_LASTING / share, 1))).astype(np.float64)
        return cls(key=key, is_once=number == 1, lasting=lasting)


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
    words = [set(_masked(parsed.segments[segment])) or {_UNKNOWN} for segment in code.tolist()]
    for own, found in zip(words, share, strict=True):
        for word in own:
            totals[word] += found
            numbers[word] += 1
    means = (sum(totals[word] / numbers[word] for word in own) / len(own) for own in words)
    return [mean > _REPLACED for mean in means]


def _replacement(aligner: Aligner, segment: int, model: list[int], other: list[int]) -> int:
    """Return what another text has instead of a segment of a model; -1 if nothing."""
    return next((b for a, b in aligner.match(model, other) if a == segment), -1)


class Judge:
    """Says of segments whether they are noise."""

    def __init__(self, evidence: Evidence) -> None:
        self._comes = {
            part: number
            for part, number in evidence.comes.items()
            if number > evidence.stays[part] or (part in evidence.drawn and number >= _CLASSES)
        }
        self._stays = {part for part in evidence.stays if part not in self._comes} | {
            part for part in evidence.comes if part not in self._comes
        }
        names = sorted({*evidence.stays, *evidence.comes})
        segments_of_word = Counter(word for part in names for word in set(_masked(part)))
        self._known = {word for word, number in segments_of_word.items() if number > 1}
        self._noise, self._signal = Counter[str](), Counter[str]()
        for part in names:
            (self._noise if part in self._comes else self._signal).update(self._words(part))
        self._num_noise, self._num_signal = self._noise.total(), self._signal.total()
        self._lonely_score = _lonely_score(evidence)

    @property
    def noise(self) -> list[Segment]:
        """Segments that were seen to come and go."""
        return sorted(self._comes)

    def noise_in(self, parsed: Parsed, visits: Visits) -> Bools:
        """Return [num_pairs] which of the texts' segments are noise.

        Args:
            parsed: The texts of the nodes of whole groups.
            visits: All visits of these nodes.
        """
        if not self._comes:
            return np.zeros(len(parsed.segment), bool)
        num_segments = max(len(parsed.segments), 1)
        group_of_text = np.zeros(parsed.num_texts, np.int64)
        group_of_text[visits.node] = visits.group
        recurrence = _Recurrence.count(parsed, visits)
        place = np.searchsorted(
            recurrence.key, group_of_text[parsed.text] * num_segments + parsed.segment
        )
        # A text that no visit shows, of a goal, has no place there.
        place = np.minimum(place, len(recurrence.key) - 1)
        score = self.scores(parsed.segments)[parsed.segment] - recurrence.lasting[place]
        score[recurrence.is_once[place]] += self._lonely_score
        is_noise = score > _LEAST_SCORE
        # Where next to nothing would be left, the text is no state with noise in it.
        size = np.bincount(parsed.text, minlength=parsed.num_texts)
        dropped = np.bincount(parsed.text, is_noise, parsed.num_texts)
        is_sound = size - dropped >= _SOUND * size
        return is_noise & is_sound[parsed.text]

    def scores(self, parts: list[Segment]) -> Floats:
        """Return [len(parts)] the score of each, if it recurs in its group.

        That of a segment that classes show is infinite.
        """
        return np.array([self._verdict(part) for part in parts], np.float64)

    def _verdict(self, part: Segment) -> float:
        if part in self._comes:
            return math.inf
        return -math.inf if part in self._stays or not self._comes else self._score(part)

    def _score(self, part: Segment) -> float:
        score = 0.0
        for word in self._words(part):
            noise, signal = self._noise[word], self._signal[word]
            share = (noise + signal) / (self._num_noise + self._num_signal)
            if share:
                score += math.log((noise + share) / (self._num_noise + 1))
                score -= math.log((signal + share) / (self._num_signal + 1))
        return score

    def _words(self, part: Segment) -> list[str]:
        return [word if word in self._known else _UNKNOWN for word in _masked(part)]


def _lonely_score(evidence: Evidence) -> float:
    noise = (evidence.num_shared_lonely + 0.5) / (evidence.num_shared + 1)
    everything = evidence.num_single_lonely / max(evidence.num_single, 1)
    return math.log(noise / max(everything - noise, noise / 20))


def _masked(part: Segment) -> list[str]:
    words = [
        "0" if kind_of(token) else token
        for token in part.tokens
        if kind_of(token) or is_word(token)
    ]
    return [part.address, *words] if part.address else words
