"""Typing errors: a rare word that is a frequent word of its group but for one letter.

That there are any, and of which sort, is learned from looks at one state. A word that was part of
an action, or that several looks at one state agree in, is no error.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from graphcredit.credit.merging.segments.looks.align import Variation, aligned
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import is_word
from graphcredit.credit.steps.arrays import Ints

_LEAST_PAIRS = 4
"""Different pairs of near-equal words that looks at one state must show."""
_LEAST_SHARE = 0.1
"""Least share of these pairs that a sort of error must have."""
_CLEAR = 5
"""So many times as often must a word stand in a place as any other that an error may be."""
_SOME, _MANY = 3, 10
"""So many times as frequent is a word as an error in it: if it is there once or twice, or more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TypoRules:
    """How words are mistyped."""

    sorts: frozenset[str] = frozenset()
    """Of errors; there are none if this is empty."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Visits of the sample that show a word."""
    known: frozenset[str] = frozenset()
    """Words that are no errors."""

    def corrections(self, counts: Mapping[str, int], known: Iterable[str]) -> dict[str, list[str]]:
        """Return the words that each error may be, the most frequent first.

        Args:
            counts: Visits of a group that show a word.
            known: Words of its actions.
        """
        total = {word: number + self.counts.get(word, 0) for word, number in counts.items()}
        right = self.known.union(known)
        index: dict[str, list[str]] = defaultdict(list)
        for word in counts:
            if total[word] >= _SOME:
                for part in _shortened(word):
                    index[part].append(word)
        found: dict[str, list[str]] = {}
        for word in counts:
            if word not in right and len(word) > 1:
                near = {other for part in _shortened(word) for other in index.get(part, ())}
                better = [other for other in near if self._is_error(word, other, total)]
                if better:
                    found[word] = sorted(better, key=lambda other: (-total[other], other))
        return found

    def _is_error(self, word: str, other: str, total: Mapping[str, int]) -> bool:
        factor = _SOME if total[word] <= 2 * _SOME else _MANY
        if total[other] < factor * total[word] or sort_of(other, word) not in self.sorts:
            return False
        return len(word) > 2 or sort_of(other, word) == "swap"


def learn_typos(parsed: Parsed, visits: Visits, actions: Iterable[str]) -> TypoRules:
    """Return how words are mistyped.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        actions: Texts of actions.
    """
    counts = word_counts(parsed, np.bincount(visits.node, minlength=parsed.num_texts))
    pairs = {
        (more, less)
        for _, differences in aligned(parsed, visits)
        for found in differences
        for one, other in near_pairs(found)
        for less, more in [sorted((one, other), key=lambda word: (counts[word], word))]
        if counts[more] >= _SOME * counts[less]
    }
    sorts = Counter(sort_of(more, less) for more, less in pairs)
    if len(pairs) < _LEAST_PAIRS:
        return TypoRules()
    return TypoRules(
        sorts=frozenset(sort for sort, n in sorts.items() if n >= _LEAST_SHARE * len(pairs)),
        counts={word: number for word, number in counts.items() if number >= _SOME},
        known=frozenset(action_words(actions)) | _lasting(parsed, visits),
    )


def word_counts(parsed: Parsed, weight: Ints) -> Counter[str]:
    """Return how many visits show each word; `weight` is [num_texts] visits of each text."""
    found = Counter[str]()
    words = [{token for token in part.tokens if is_word(token)} for part in parsed.segments]
    for codes, times in zip(parsed.lists(), weight.tolist(), strict=True):
        for word in set[str]().union(*(words[code] for code in codes)):
            found[word] += times
    return found


def action_words(actions: Iterable[str]) -> Iterator[str]:
    """Yield the words of actions."""
    for action in actions:
        yield from re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)*", action.casefold())


def near_pairs(found: Variation) -> Iterator[tuple[str, str]]:
    """Yield the words of a difference if they are near-equal, one by one."""
    pairs = list(zip(found.one, found.other, strict=False))
    if len(found.one) == len(found.other) and all(is_near(*pair) for pair in pairs):
        yield from pairs


def is_near(one: str, other: str) -> bool:
    """Return whether two tokens are words that differ by one letter."""
    return is_word(one) and is_word(other) and bool(sort_of(one, other))


def sort_of(right: str, wrong: str) -> str:
    """Return what was done to a word: swap, miss, add or replace a letter; else nothing."""
    start = 0
    while start < min(len(right), len(wrong)) and right[start] == wrong[start]:
        start += 1
    a, b = right[start:], wrong[start:]
    if len(a) == len(b) >= 2 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:]:
        return "swap"
    if len(a) == len(b) >= 1 and a[1:] == b[1:]:
        return "replace"
    if len(a) == len(b) + 1 and a[1:] == b:
        return "miss"
    if len(b) == len(a) + 1 and b[1:] == a:
        return "add"
    return ""


def _shortened(word: str) -> set[str]:
    return {word, *(word[:n] + word[n + 1 :] for n in range(len(word)))}


def _lasting(parsed: Parsed, visits: Visits) -> frozenset[str]:
    """Return words that all of several looks at one state have."""
    words = [
        frozenset(token for token in part.tokens if is_word(token)) for part in parsed.segments
    ]
    of_text = [frozenset[str]().union(*(words[code] for code in codes)) for codes in parsed.lists()]
    common: dict[int, frozenset[str]] = {}
    several = set[int]()
    for certain, node in zip(visits.certain.tolist(), visits.node.tolist(), strict=True):
        if certain in common:
            several.add(certain)
            common[certain] &= of_text[node]
        else:
            common[certain] = of_text[node]
    return frozenset[str]().union(*(common[certain] for certain in several))


def neighbours(parsed: Parsed, weight: Ints) -> Counter[tuple[str, str]]:
    """Return how many visits show two tokens side by side; `weight` is as in `word_counts`."""
    number = np.bincount(parsed.segment, weight[parsed.text], len(parsed.segments)).tolist()
    found = Counter[tuple[str, str]]()
    for part, times in zip(parsed.segments, number, strict=True):
        if times:
            for pair in pairwise(("", *part.tokens, "")):
                found[pair] += int(times)
    return found


def correct(
    segment: Segment,
    corrections: Mapping[str, Sequence[str]],
    beside: Counter[tuple[str, str]],
) -> Segment:
    """Return a segment without the errors: of the words that one may be, the one that fits best."""
    if not any(token in corrections for token in segment.tokens):
        return segment
    tokens = ["", *segment.tokens, ""]
    for position in range(1, len(tokens) - 1):
        left, token, right = tokens[position - 1 : position + 2]
        if token in corrections:
            tokens[position] = _best(left, token, right, corrections[token], beside)
    return Segment(segment.address, tuple(tokens[1:-1]))


def _best(
    left: str, token: str, right: str, words: Sequence[str], beside: Counter[tuple[str, str]]
) -> str:
    """Return the word that stands between two tokens; the error itself if several do."""
    fits = [min(beside[left, word], beside[word, right]) for word in words]
    best = max(fits)
    if sum(fit * _CLEAR >= best for fit in fits) > 1:
        return token if best else words[0]
    return words[fits.index(best)]
