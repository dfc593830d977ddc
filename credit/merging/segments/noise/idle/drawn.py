"""Words that certain looks at a state differ in as others do, wherever they stand: names, moods.

A word of a state is in all certain looks at it. One that is in some of them, as often as in looks
at different states, was drawn for the look or for the rollout. Words that stand between the same
two tokens are a family: one of them is drawn at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.evidence import drawn
from graphcredit.credit.merging.segments.noise.families import families_of
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.plausible import plausible
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, is_number, is_word, kind_of
from graphcredit.credit.steps.arrays import factorise_pairs


@dataclass(frozen=True, slots=True)
class WordsLeftOut:
    """Leaves words out wherever they stand."""

    words: frozenset[str] = frozenset()

    def apply(self, part: Segment) -> Segment:
        """Return a segment with one slot for each run of these words."""
        if self.words.isdisjoint(part.tokens):
            return part
        tokens: list[str] = []
        was_left_out = False
        for token in part.tokens:
            is_left_out = token in self.words
            if not (is_left_out and was_left_out):
                tokens.append(SLOT if is_left_out else token)
            was_left_out = is_left_out
        return Segment(part.address, tuple(tokens))


def find_drawn_words(
    parsed: Parsed, visits: Visits, used: frozenset[str]
) -> Claims[frozenset[str]]:
    """Claim families of words and identifiers that are drawn.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        used: Tokens of actions, which are not claimed.
    """
    families = _families(parsed, frozenset(_drawn_words(parsed, visits) - used))
    family_of = {word: key for key, own in enumerate(families) for word in own}
    claims = Claims(
        things=families,
        of_segment=[
            [(family_of[token], token) for token in part.tokens if token in family_of]
            for part in parsed.segments
        ],
        without=lambda chosen: WordsLeftOut(frozenset[str]().union(*chosen)),
    )
    return claims.only(plausible(claims, parsed, visits))


def _families(parsed: Parsed, words: frozenset[str]) -> list[frozenset[str]]:
    """Return the words by families: those between the same two tokens are one."""
    first: dict[tuple[str, str, str], str] = {}
    pairs: list[tuple[str, str]] = []
    for code in np.unique(parsed.segment).tolist():
        part = parsed.segments[code]
        for left, word, right in _between(part, words):
            pairs.append((first.setdefault((part.address, left, right), word), word))
    return families_of(words, pairs)


def _drawn_words(parsed: Parsed, visits: Visits) -> set[str]:
    words: list[str] = []
    code_of: dict[str, int] = {}
    rows: list[tuple[int, int]] = []
    for code, part in enumerate(parsed.segments):
        for token in {t for t in part.tokens if _may_be_drawn(t)}:
            if token not in code_of:
                code_of[token] = len(words)
                words.append(token)
            rows.append((code, code_of[token]))
    if not rows:
        return set()
    segment, word = np.array(rows, np.int64).T
    start = np.searchsorted(segment, np.arange(len(parsed.segments) + 1))
    visit, shown = parsed.of_visits(visits.node)
    size = np.diff(start)[shown]
    offset = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    of_word = word[np.repeat(start[shown], size) + offset]
    _, of_visit, of_word = factorise_pairs(np.repeat(visit, size), of_word)
    return {words[code] for code in drawn(visits, of_visit, of_word).tolist()}


def _may_be_drawn(token: str) -> bool:
    return (
        token != SLOT
        and (is_word(token) or bool(kind_of(token)))
        and not is_number(token)  # `slots.py` judges them.
    )


def _between(part: Segment, words: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each of some words between its neighbours, of which those that are drawn are slots."""
    masked = ["", *(SLOT if token in words else token for token in part.tokens), ""]
    for left, token, right in zip(masked, part.tokens, masked[2:], strict=False):
        if token in words:
            yield left, token, right
