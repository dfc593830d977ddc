"""Segments that stand for each other as wholes, in certain looks at one state."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphcredit.credit.merging.segments.looks.align import LEAST_OVERLAP, Aligner, matched
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims, Reduction
from graphcredit.credit.merging.segments.noise.idle.plausible import plausible
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, kind_of

_TOGETHER = 0.02
"""Share of the texts in which two that stand for each other may stand together."""


@dataclass(frozen=True, slots=True)
class VersionRules:
    """Which segment stands for which."""

    first_of: dict[Segment, Segment] = field(default_factory=dict[Segment, Segment])

    def apply(self, part: Segment) -> Segment:
        """Return the segment that stands for a segment."""
        return self.first_of.get(part, part)


def find_versions(parsed: Parsed, visits: Visits, first: Reduction) -> Claims[Sequence[Segment]]:
    """Claim families of segments.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        first: What is done to segments before.
    """
    left = parsed.map(first.apply)
    families = [own for own in _families(left, visits) if not _differ_in_values(own)]
    family_of = {part: key for key, own in enumerate(families) for part in own}
    claims = Claims(
        things=families,
        of_segment=[
            [(family_of[part], f"{part.address}\t{' '.join(part.tokens)}")]
            if part in family_of
            else []
            for part in map(first.apply, parsed.segments)
        ],
        without=_one_for_all,
    )
    return claims.only(plausible(claims, parsed, visits))


def _one_for_all(families: Sequence[Sequence[Segment]]) -> VersionRules:
    return VersionRules({part: own[0] for own in families for part in own})


def _families(parsed: Parsed, visits: Visits) -> list[Sequence[Segment]]:
    """Return families of segments, in each the most frequent one first."""
    texts_of: dict[int, set[int]] = defaultdict(set)
    for text, code in zip(parsed.text.tolist(), parsed.segment.tolist(), strict=True):
        texts_of[code].add(text)
    number = {code: len(own) for code, own in texts_of.items()}
    members: dict[int, list[int]] = {}
    family_of: dict[int, int] = {}
    for one, other in _exchanged(parsed, visits):
        a, b = family_of.setdefault(one, one), family_of.setdefault(other, other)
        there, here = texts_of[a], texts_of[b]
        if a == b or len(there & here) > _TOGETHER * min(len(there), len(here)):
            continue
        moved = members.pop(b, [b])
        members.setdefault(a, [a]).extend(moved)
        family_of.update(dict.fromkeys(moved, a))
        texts_of[a] = there | here
    return [
        [parsed.segments[code] for code in sorted(own, key=lambda code: (-number[code], code))]
        for _, own in sorted(members.items())
    ]


def _exchanged(parsed: Parsed, visits: Visits) -> list[tuple[int, int]]:
    """Return pairs of segments of which looks at one state have one or the other, by frequency."""
    aligner, states = Aligner(segments=parsed.segments), Counter[tuple[int, int]]()
    for pairs in matched(aligner, parsed, visits):
        states.update({(min(pair), max(pair)) for pair in pairs})
    return [
        pair
        for pair, times in sorted(states.items(), key=lambda item: (-item[1], item[0]))
        if pair[0] != pair[1] and (times > 1 or aligner.overlap(*pair) >= LEAST_OVERLAP)
    ]


def _differ_in_values(family: Sequence[Segment]) -> bool:
    """Return whether two members differ in numbers, times or identifiers alone."""
    forms = {
        (part.address, tuple(SLOT if kind_of(token) else token for token in part.tokens))
        for part in family
    }
    return len(forms) < len(family)
