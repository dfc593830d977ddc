"""Digits in the place of letters that they look like: `d0or` is a door.

Such a token has the type of an identifier. It is read as a word before identifiers are judged, if
looks at one state show that words are garbled.
"""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np

from graphcredit.credit.merging.segments.looks.align import looks
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import is_word

_GARBLED = re.compile(r"(?=\d*[^\W\d_])[^\W_]*\d[^\W_]*(?:'[^\W\d_]+)*")
"""Letters and digits."""
_LETTERS = {
    "0": "o",
    "1": "il",
    "2": "z",
    "3": "e",
    "4": "a",
    "5": "s",
    "7": "t",
    "8": "b",
    "9": "g",
}
_MOST = 2
"""Digits in one word."""
_FREQUENT = 3
"""Visits that show a word of which others are garbled forms."""
_STATES = 3
"""In so many states must a word and a garbled form of it be seen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GarbledWords:
    """The words that may be garbled."""

    words: frozenset[str] = frozenset()

    def apply(self, segment: Segment) -> Segment:
        """Return a segment with the words that were meant."""
        if not self.words:
            return segment
        return Segment(segment.address, tuple([self.meant(token) for token in segment.tokens]))

    def meant(self, token: str) -> str:
        """Return the word that a token is a garbled form of; the token if there is not just one."""
        number = sum(map(str.isdigit, token))
        if not 0 < number <= _MOST or not _GARBLED.fullmatch(token):
            return token
        choices = product(*(_LETTERS.get(sign, sign) for sign in token))
        found = {word for letters in choices if (word := "".join(letters)) in self.words}
        return found.pop() if len(found) == 1 else token


def learn_garbled(parsed: Parsed, visits: Visits) -> GarbledWords:
    """Return the words that may be garbled; none if looks at one state do not show that.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
    """
    tokens = [frozenset(part.tokens) for part in parsed.segments]
    lists = parsed.lists()
    weight = np.bincount(visits.node, minlength=parsed.num_texts).tolist()
    counts = Counter[str]()
    for codes, times in zip(lists, weight, strict=True):
        for token in frozenset[str]().union(*(tokens[code] for code in codes)):
            counts[token] += times
    frequent = (word for word, times in counts.items() if is_word(word) and times >= _FREQUENT)
    rules = GarbledWords(words=frozenset(frequent))
    meant = {token: word for token in counts if (word := rules.meant(token)) != token}
    if not meant:
        return GarbledWords()
    found = 0
    for _, nodes in looks(visits):
        seen = frozenset[str]().union(*(tokens[code] for node in nodes for code in lists[node]))
        found += any(meant[token] in seen for token in seen if token in meant)
    return rules if found >= _STATES else GarbledWords()
