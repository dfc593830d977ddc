"""What two looks at one state say differently: segments that match, and how their words differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import combinations

import numpy as np

from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import Tokens, is_word

_LOOKS = 5
"""Looks at one state that are compared, each with each."""
LEAST_OVERLAP = 0.5
"""Share of equal words from which two segments may be two versions of one."""
_WHOLE = 0.3
"""With fewer equal words, segments are exchanged whole."""
_COMMON = 0.4
"""Share of the words of two looks at one state that must be equal."""
_FEW = 6
"""With fewer words of its own a text cannot be told from another."""
_LONGEST = 12
"""Words that are exchanged at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """One version of a place in a segment, and another."""

    one: Tokens
    other: Tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Aligner:
    """Matches the segments of texts; it remembers what it compared."""

    segments: Sequence[Segment]
    _overlaps: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    _differences: dict[tuple[int, int], list[Variation]] = field(
        default_factory=dict[tuple[int, int], list[Variation]]
    )

    def match(self, one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
        """Return pairs of segments of two texts that may be two versions of one.

        Those with many equal words come first, then those that alone stand in one place.
        """
        found = self._similar(one, other)
        used_left, used_right = {a for a, _ in found}, {b for _, b in found}
        blocks = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
        for tag, i, j, k, m in blocks:
            left = [code for code in one[i:j] if code not in used_left]
            right = [code for code in other[k:m] if code not in used_right]
            if tag == "replace" and len(left) == len(right):
                found += zip(left, right, strict=True)
        return found

    def _similar(self, one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
        left = sorted((Counter(one) - Counter(other)).elements())
        right = sorted((Counter(other) - Counter(one)).elements())
        scored = sorted(
            (-score, i, j)
            for i, a in enumerate(left)
            for j, b in enumerate(right)
            if (score := self.overlap(a, b)) >= LEAST_OVERLAP
        )
        found: list[tuple[int, int]] = []
        used_left, used_right = set[int](), set[int]()
        for _, i, j in scored:
            if i not in used_left and j not in used_right:
                used_left.add(i)
                used_right.add(j)
                found.append((left[i], right[j]))
        return found

    def differences(self, one: int, other: int) -> list[Variation]:
        """Return where two segments differ."""
        if (one, other) not in self._differences:
            a, b = self.segments[one].tokens, self.segments[other].tokens
            if self.overlap(one, other) < _WHOLE:
                return [Variation(one=a, other=b)]
            codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
            self._differences[one, other] = [
                Variation(one=a[i:j], other=b[k:m])
                for tag, i, j, k, m in codes
                if tag != "equal" and j - i <= _LONGEST and m - k <= _LONGEST
            ]
        return self._differences[one, other]

    def overlap(self, one: int, other: int) -> float:
        """Return the share of equal words of two segments."""
        if (one, other) not in self._overlaps:
            self._overlaps[one, other] = _overlap(self.segments[one], self.segments[other])
        return self._overlaps[one, other]


def _overlap(one: Segment, other: Segment) -> float:
    if one.address != other.address:
        return 0.0
    if one.address and not (one.tokens and other.tokens):
        return 1.0
    common = (Counter(one.tokens) & Counter(other.tokens)).total()
    share = 2 * common / max(len(one.tokens) + len(other.tokens), 1)
    # The only value of a field is a version of its other values, however different it is.
    return max(share, LEAST_OVERLAP) if one.address else share


def looks(visits: Visits) -> Iterator[tuple[int, list[int]]]:
    """Yield the classes seen with several texts, each with these."""
    order = np.lexsort((visits.node, visits.certain))
    certain, node = visits.certain[order], visits.node[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (certain[1:] != certain[:-1]) | (node[1:] != node[:-1])
    certain, node = certain[is_first], node[is_first]
    start = np.flatnonzero(np.concatenate(([True], certain[1:] != certain[:-1])))
    for own in np.split(node, start[1:]):
        if len(own) > 1:
            yield int(own[0]), own.tolist()


@dataclass(frozen=True, kw_only=True, slots=True)
class Likeness:
    """Tells versions of one text from two texts.

    Where two looks at one state have few words in common, the state was not one: an environment of
    chance went elsewhere. Words that most texts have say nothing of that.
    """

    own: list[Counter[str]]
    """The words of each segment that most texts have not."""

    @classmethod
    def of(cls, parsed: Parsed) -> "Likeness":
        """Count the words of some texts."""
        seen = Counter[str]()
        times = np.bincount(parsed.segment, minlength=len(parsed.segments)).tolist()
        for part, number in zip(parsed.segments, times, strict=True):
            for token in {*part.tokens}:
                seen[token] += number
        return cls(
            own=[
                Counter(t for t in part.tokens if is_word(t) and 2 * seen[t] <= parsed.num_texts)
                for part in parsed.segments
            ]
        )

    def are_versions(self, one: list[int], other: list[int]) -> bool:
        """Return whether two texts, as segments, may be versions of one."""
        first, second = (sum((self.own[c] for c in codes), Counter()) for codes in (one, other))
        longest = max(first.total(), second.total())
        return longest < _FEW or (first & second).total() >= _COMMON * longest


def matched(aligner: Aligner, parsed: Parsed, visits: Visits) -> Iterator[set[tuple[int, int]]]:
    """Yield, for each state, the pairs of segments of which looks have one or the other."""
    lists, likeness = parsed.lists(), Likeness.of(parsed)
    for _, nodes in looks(visits):
        found = set[tuple[int, int]]()
        for one, other in combinations(nodes[:_LOOKS], 2):
            if likeness.are_versions(lists[one], lists[other]):
                found.update(aligner.match(lists[one], lists[other]))
        yield found


def aligned(parsed: Parsed, visits: Visits) -> Iterator[tuple[int, list[Variation]]]:
    """Yield the differences between looks at one state, with a number of the state."""
    aligner = Aligner(segments=parsed.segments)
    for number, pairs in enumerate(matched(aligner, parsed, visits)):
        for one, other in sorted(pairs):
            yield number, aligner.differences(one, other)
