"""Compare two texts word by word: a similarity, and the differences as lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORDS = re.compile(r"\S+\s*|\s+")
_MOST_WORDS = 1500
_CONTEXT = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class WordDiff:
    """A comparison of two texts."""

    ratio: float
    """difflib's ratio over words: 1 for equal texts, 0 for nothing in common."""
    lines: str
    """The differences: words only in the first text after `- `, only in the second after `+ `."""


def compare(first: str, second: str) -> WordDiff:
    """Compare the first 1,500 words of two texts: difflib's time grows with their square."""
    ours, theirs = (_WORDS.findall(text)[:_MOST_WORDS] for text in (first, second))
    matcher = SequenceMatcher(a=ours, b=theirs, autojunk=False)
    return WordDiff(ratio=matcher.ratio(), lines="\n".join(_lines(matcher, ours, theirs)))


def _lines(matcher: SequenceMatcher[str], ours: list[str], theirs: list[str]) -> Iterator[str]:
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag == "equal":
            yield from _marked("  ", _shortened(ours[start:end]))
        else:
            yield from _marked("- ", ours[start:end])
            yield from _marked("+ ", theirs[other_start:other_end])


def _shortened(words: list[str]) -> list[str]:
    if len(words) <= 2 * _CONTEXT + 4:
        return words
    return [*words[:_CONTEXT], " … ", *words[-_CONTEXT:]]


def _marked(mark: str, words: list[str]) -> Iterator[str]:
    return (mark + line for line in "".join(words).split("\n") if line.strip())
