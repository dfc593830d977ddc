"""Which of many names a text has, as whole words, in one pass over the text.

Case and white space do not matter, nor whether an accented letter is one code point or two. Every
name that stands there counts, one inside another too: "New York City" has "New York" and "York". A
name is whole where no letter, digit or underscore follows or goes before; scripts that put no
spaces between words, such as Chinese and Thai, have no such edges, so there it is enough to occur.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from graphcredit.store.errors import MissingDependencyError

_WITHOUT_SPACES = (
    "CJK ",
    "HIRAGANA ",
    "KATAKANA ",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
    "TIBETAN ",
)
"""How Unicode names the characters of scripts that put no spaces between words."""


def fold(text: str) -> str:
    """Return a text as it is compared: case-folded, with single spaces, in one Unicode form."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFD", text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())


class NameFinder:
    """Finds the names of one task's entities."""

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        """Build the automaton.

        Args:
            names: A name and what it stands for. One name may stand for several things, a thing
                may have several names, and an empty name is found nowhere.

        Raises:
            MissingDependencyError: The extra `er` is not installed.
        """
        meanings: dict[str, list[int]] = {}
        for name, meaning in names:
            meanings.setdefault(fold(name), []).append(meaning)
        meanings.pop("", None)
        self._meanings: Sequence[list[int]] = list(meanings.values())
        try:
            from ahocorasick_rs import AhoCorasick
        except ImportError:
            raise MissingDependencyError(
                "recognising entities needs the package 'ahocorasick-rs', which is not installed: "
                "pip install 'graphcredit[er]'"
            ) from None
        self._automaton = AhoCorasick(meanings)

    def find(self, text: str) -> list[int]:
        """Return what the names in a text stand for, each once, ascending."""
        folded = fold(text)
        found = {
            pattern
            for pattern, start, end in self._automaton.find_matches_as_indexes(
                folded, overlapping=True
            )
            if _is_whole(folded, start, end)
        }
        return sorted({meaning for pattern in found for meaning in self._meanings[pattern]})


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether no word goes on before `start` or after `end`."""
    is_free_before = start == 0 or not _continues(text[start - 1], text[start])
    is_free_after = end == len(text) or not _continues(text[end], text[end - 1])
    return is_free_before and is_free_after


def _continues(outside: str, edge: str) -> bool:
    """Whether the character beside a name makes a longer word of the name's edge."""
    return _is_of_a_word(outside) and not (_needs_no_spaces(outside) or _needs_no_spaces(edge))


@lru_cache(maxsize=1 << 14)
def _is_of_a_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


@lru_cache(maxsize=1 << 14)
def _needs_no_spaces(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_WITHOUT_SPACES)
