"""Phrases that stand for each other in many segments, in certain looks at one state.

Such are the fixed words of two languages, or of two designs of a page, around what they show.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphcredit.credit.merging.segments.looks.align import Aligner, matched
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.families import families_of
from graphcredit.credit.merging.segments.noise.idle.claims import Claims, Reduction
from graphcredit.credit.merging.segments.noise.idle.plausible import plausible
from graphcredit.credit.merging.segments.noise.words import WordRules
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import Tokens, is_word

_STATES = 3
"""Two phrases must be seen to stand for each other in so many states."""
_LONGEST = 8
"""Tokens of a phrase."""
_START = "\x02"
"""Begins each segment, and the phrases that stand at the beginning only."""


@dataclass(frozen=True, slots=True)
class PhraseRules:
    """Puts one phrase in the place of others."""

    words: WordRules

    def apply(self, part: Segment) -> Segment:
        """Return a segment with one version of each phrase."""
        changed = self.words.apply(Segment(part.address, (_START, *part.tokens)))
        return Segment(part.address, changed.tokens[1:])

    def found_in(self, part: Segment) -> list[Tokens]:
        """Return the phrases of a segment."""
        return self.words.found_in((_START, *part.tokens))


def find_phrases(
    parsed: Parsed, visits: Visits, used: frozenset[str], first: Reduction, *, is_certain: bool
) -> Claims[frozenset[Tokens]]:
    """Claim families of phrases.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        used: Tokens of actions, of which a phrase may not consist.
        first: What is done to segments before.
        is_certain: Whether classes of visits are; if not, they may be of one version each.
    """
    states = _exchanged(parsed.map(first.apply), visits)
    pairs = [
        pair
        for pair, times in sorted(states.items())
        if times >= _STATES and not any(used.issuperset(filter(is_word, own)) for own in pair)
    ]
    families = families_of((), pairs)
    family_of = {phrase: key for key, own in enumerate(families) for phrase in own}
    phrases = PhraseRules(WordRules.of({phrase: phrase for phrase in family_of}, {}))
    claims = Claims(
        things=families,
        of_segment=[
            list(_values(phrases.found_in(first.apply(part)), family_of))
            for part in parsed.segments
        ],
        without=_one_for_all,
    )
    return claims.only(plausible(claims, parsed, visits, is_certain=is_certain))


def _one_for_all(families: Sequence[frozenset[Tokens]]) -> PhraseRules:
    one = {phrase: min(own) for own in families for phrase in own}
    return PhraseRules(WordRules.of(one, {}))


def _values(found: list[Tokens], family_of: dict[Tokens, int]) -> Iterator[tuple[int, str]]:
    values: dict[int, list[str]] = defaultdict(list)
    for phrase in found:
        values[family_of[phrase]].append(" ".join(phrase))
    for key, own in values.items():
        yield key, ", ".join(sorted(set(own)))


def _exchanged(parsed: Parsed, visits: Visits) -> Counter[tuple[Tokens, Tokens]]:
    """Return in how many states looks have one or the other of two phrases in one place."""
    tokens, states = [part.tokens for part in parsed.segments], Counter[tuple[Tokens, Tokens]]()
    for pairs in matched(Aligner(segments=parsed.segments), parsed, visits):
        found = {_difference(tokens[one], tokens[other]) for one, other in pairs}
        states.update(filter(_may_be_phrases, found))
    return states


def _may_be_phrases(pair: tuple[Tokens, Tokens]) -> bool:
    return all(own and len(own) <= _LONGEST and any(map(is_word, own)) for own in pair)


def _difference(one: Tokens, other: Tokens) -> tuple[Tokens, Tokens]:
    """Return, in order, what two segments have between what they begin and end with alike."""
    shorter = min(len(one), len(other))
    start = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    stop = next(
        (i for i in range(shorter - start) if one[-1 - i] != other[-1 - i]), shorter - start
    )
    if start + stop == 0:
        return (), ()
    mark = () if start else (_START,)
    parts = [(*mark, *own[start : len(own) - stop]) for own in (one, other)]
    return min(parts), max(parts)
