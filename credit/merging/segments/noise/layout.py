"""Punctuation and gaps that say nothing: emphasis, frames, bullets; and those that are a drawing.

If looks at one state have segments that differ in signs only, these signs are left out. But in a
drawing, such as a map, they stay if they tell states apart. They stay there, too, if they change at
every look, but without the gaps they tell states apart: the gaps may be a part of the map.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from graphcredit.credit.merging.segments.counts.tally import ValueCounts, observe
from graphcredit.credit.merging.segments.looks.align import looks
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment, without_layout
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import is_escape, is_layout
from graphcredit.credit.steps.arrays import Bools

_NEVER_DRAWN = frozenset({"\x1b"})
"""Colours of a terminal are left out of drawings, too."""
_SEVERAL = 3
_LEAST = 2
"""In so many states signs must be seen to change: some, and each of them."""
_SURE = 6.0
"""A drawing tells states apart if so many pairs of looks are expected to differ, and if in so many
states it is the same at every look."""
_HALF = 0.5
"""And if no more than this share of these differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutRules:
    """Which segments lose which signs."""

    loose: frozenset[str] = frozenset()
    """Signs that change, by `_sign`."""
    tells: Mapping[Segment, bool] | None = None
    """By a drawing without its signs: whether they tell states apart."""
    others_tell: bool = False
    """Whether they do in any of these; then others keep theirs, too."""

    def apply(self, part: Segment) -> Segment:
        """Return a segment without the signs that say nothing."""
        if not self.loose:
            return part
        bare, loose = without_layout(part), self.loose
        if _is_drawing(part, bare) and (self.tells or {}).get(bare, self.others_tell):
            loose &= _NEVER_DRAWN
        kept = [t for t in part.tokens if not (is_layout(t) and _sign(t) in loose)]
        return Segment(part.address, tuple(kept))


def learn_layout(parsed: Parsed, visits: Visits) -> LayoutRules:
    """Return which signs say nothing, and where.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
    """
    bare = [without_layout(part) for part in parsed.segments]
    loose = _changing(parsed, visits, bare)
    if not loose:
        return LayoutRules()
    pairs = zip(bare, parsed.segments, strict=True)
    drawings = sorted({own for own, part in pairs if _is_drawing(part, own)})
    if not drawings:
        return LayoutRules(loose=loose)
    whole, signs = (
        _counts(parsed, visits, bare, drawings, has_gaps=has_gaps) for has_gaps in (True, False)
    )
    tells = _tells_apart(whole) | (whole.is_noise & _tells_apart(signs))
    is_known = tells | whole.is_noise
    known = {form: bool(tells[key]) for key, form in enumerate(drawings) if is_known[key]}
    return LayoutRules(loose=loose, tells=known, others_tell=any(known.values()))


def _is_drawing(part: Segment, bare: Segment) -> bool:
    """Return whether a segment has as many signs and gaps as words; gaps between words are none."""
    shown = [token for token in part.tokens if not is_escape(token)]
    padded = ("", *shown, "")
    between = sum(
        token.isspace() and not (is_layout(left) or is_layout(right))
        for left, token, right in zip(padded, shown, padded[2:], strict=False)
        if left and right
    )
    return len(shown) - between >= 2 * len(bare.tokens)


def _sign(token: str) -> str:
    """Return a sign; all gaps are one, and all colours of a terminal."""
    if token.isspace():
        return " "
    return token[0] if token[0] == "\x1b" else token


def _changing(parsed: Parsed, visits: Visits, bare: list[Segment]) -> frozenset[str]:
    """Return the signs in which looks at one state have the same words differ."""
    lists = parsed.lists()
    signs = [Counter(filter(is_layout, part.tokens)) for part in parsed.segments]
    number = Counter[str]()
    several = 0
    for _, nodes in looks(visits):
        versions: dict[Segment, list[tuple[int, ...]]] = defaultdict(list)
        for node in nodes:
            own: dict[Segment, list[int]] = defaultdict(list)
            for code in sorted(set(lists[node])):
                own[bare[code]].append(code)
            for form, codes in own.items():
                versions[form].append(tuple(codes))
        changed = [found for found in versions.values() if len(set(found)) > 1]
        # Two versions of an advertisement may meet, but not in many looks at one state.
        several += len(nodes) >= _SEVERAL and any(len(found) == len(nodes) for found in changed)
        differing = set[str]()
        for found in changed:
            first, *others = (
                sum((signs[code] for code in codes), Counter[str]()) for codes in set(found)
            )
            for other in others:
                differing |= {_sign(token) for token in (first - other) + (other - first)}
        number.update(differing)
    if several < _LEAST:
        return frozenset()
    return frozenset(sign for sign, times in number.items() if times >= _LEAST)


def _tells_apart(counts: ValueCounts) -> Bools:
    few = counts.loose_observed <= _HALF * counts.loose_expected
    # Pairs of looks at one state are not independent, so states are counted, too.
    few &= (counts.agree >= _SURE) & (counts.disagree <= _HALF * counts.agree)
    return (counts.loose_expected >= _SURE) & few


def _counts(
    parsed: Parsed, visits: Visits, bare: list[Segment], forms: list[Segment], *, has_gaps: bool
) -> ValueCounts:
    """Count the layouts of some forms; the value is all segments of a form in a text, in order."""
    key_of = {form: key for key, form in enumerate(forms)}
    of_segment = [
        [(key_of[own], " ".join(t for t in part.tokens if has_gaps or not t.isspace()))]
        if own in key_of
        else []
        for own, part in zip(bare, parsed.segments, strict=True)
    ]
    return observe(parsed, visits, of_segment, len(forms), in_order=True)
