"""Lines that were wrapped: a line break at which other texts go on.

A break within a sentence says nothing if the two words before it and the one after it stand on one
line elsewhere. Words that were cut in two are found alike.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

Words = tuple[str, ...]

_FRAME = re.compile(r"^[\s|│┃║>#*]+")
_FRAME_AFTER = re.compile(r"[\s|│┃║]+$")
"""What a box, a quotation or a comment puts before and after each of its lines."""


@dataclass(frozen=True, slots=True)
class SoftBreaks:
    """The breaks that say nothing, by the words around them."""

    between: frozenset[Words] = frozenset()
    """(the word before the last one, the last one, the first one of the next line)."""
    inside: frozenset[Words] = frozenset()
    """The same of words that were cut in two."""

    def joined(self, text: str) -> str:
        """Return a text without these breaks."""
        if not (self.between or self.inside) or "\n" not in text:
            return text
        lines = text.splitlines()
        parts, ends = lines[:1], words_of(lines[0])
        for line in lines[1:]:
            words = words_of(line)
            around = around_break(ends, words)
            if around in self.between or around in self.inside:
                blank = " " if around in self.between else ""
                parts[-1] = f"{_without(_FRAME_AFTER, parts[-1])}{blank}{_without(_FRAME, line)}"
            else:
                parts.append(line)
            ends = words
        return "\n".join(parts)

    def in_line(self, words: Words) -> set[Words]:
        """Return those of these breaks that are none in a line of some words."""
        found = self.between.intersection(around_blanks(words))
        pairs = set(pairwise(words))
        cut = {own for own in self.inside if (own[0], own[1] + own[2]) in pairs}
        return {*found, *cut}


def words_of(line: str) -> Words:
    """Return the words of a line after a mark of its beginning, without a frame around it."""
    return ("", *_without(_FRAME_AFTER, _without(_FRAME, line)).split())


def _without(frame: re.Pattern[str], line: str) -> str:
    return frame.sub("", line)


def around_break(one: Words, other: Words) -> Words:
    """Return the words around the break between two lines, if the first one may go on."""
    goes_on = min(len(one), len(other)) > 1 and one[-1].removesuffix(",")[-1:].isalnum()
    return (one[-2], one[-1], other[1]) if goes_on else ()


def around_blanks(words: Words) -> Iterator[Words]:
    """Yield the words around each blank of a line."""
    return zip(words, words[1:], words[2:], strict=False)


def soft_breaks(breaks: Iterable[Words], lines: Iterable[Words]) -> SoftBreaks:
    """Return which breaks say nothing.

    Args:
        breaks: The words around breaks.
        lines: The words of all lines.
    """
    found = {around for around in breaks if around}
    pairs, blanks = set[Words](), set[Words]()
    for words in lines:
        pairs.update(pairwise(words))
        blanks.update(around_blanks(words))
    inside = {own for own in found - blanks if (own[0], own[1] + own[2]) in pairs}
    return SoftBreaks(frozenset(found & blanks), frozenset(inside))
