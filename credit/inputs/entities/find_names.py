"""A search for many names in texts, as whole words, in one pass over each text.

Case and white space do not matter, nor whether an accented letter is one code point or two. Every
name that stands there counts, one inside another too: "New York City" has "New York" and "York". A
name is whole where no letter, digit or underscore follows or goes before; scripts that put no
spaces between words, such as Chinese and Thai, have no such edges, so there it is enough to occur.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.steps.arrays import Ints
from graphcredit.store.errors import MissingDependencyError
from graphcredit.store.extras import how_to_install

_WITHOUT_SPACES = (
    *("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO "),
    *("KHMER ", "MYANMAR ", "TIBETAN "),
)
"""How Unicode names the characters of scripts that put no spaces between words."""


def fold(text: str) -> str:
    """Return a text as it is compared: case-folded, with single spaces, in one Unicode form."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFD", text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())


class NameFinder:
    """Finds the names that texts have, where each owner of texts has names of its own."""

    def __init__(self, names: Iterable[tuple[int, str, int]]) -> None:
        """Build an automaton for each owner.

        Args:
            names: Owner, name, and what the name stands for. One name may stand for several things,
                a thing may have several names, and an empty name is found nowhere.

        Raises:
            MissingDependencyError: The extra `er` is not installed.
        """
        of_owner: dict[int, dict[str, list[int]]] = {}
        for owner, name, meaning in names:
            if folded := fold(name):
                of_owner.setdefault(owner, {}).setdefault(folded, []).append(meaning)
        self._of_owner = {
            owner: (_automaton(list(of_name)), list(of_name.values()))
            for owner, of_name in of_owner.items()
        }

    def find(self, owner: Ints, texts: pa.Array) -> tuple[Ints, Ints]:
        """Return what is named in some texts.

        Args:
            owner: [n] whose text each one is.
            texts: [n] the texts; null names nothing.

        Returns:
            Positions in `texts`, ascending, and what is named there, ascending within a text and
            each once.
        """
        pairs = [
            (position, meaning)
            for position, (whose, text) in enumerate(zip(owner.tolist(), texts, strict=True))
            for meaning in sorted(self._named(whose, text.as_py()))
        ]
        position, meaning = np.array(pairs, np.int64).reshape(-1, 2).T
        return position, meaning

    def _named(self, owner: int, text: str | None) -> set[int]:
        if not text or owner not in self._of_owner:
            return set()
        automaton, meanings = self._of_owner[owner]
        folded = fold(text)
        return {
            meaning
            for name, start, end in automaton.find_matches_as_indexes(folded, overlapping=True)
            if _is_whole(folded, start, end)
            for meaning in meanings[name]
        }


def _automaton(names: list[str]) -> Any:
    try:
        from ahocorasick_rs import AhoCorasick
    except ImportError:
        raise MissingDependencyError(
            "recognising entities needs the package 'ahocorasick-rs', which is not installed: "
            f"{how_to_install('er')}"
        ) from None
    return AhoCorasick(names)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether no word goes on before `start` or after `end`."""
    goes_on_before = start > 0 and _is_one_word(text[start - 1], text[start])
    goes_on_after = end < len(text) and _is_one_word(text[end], text[end - 1])
    return not (goes_on_before or goes_on_after)


def _is_one_word(outside: str, edge: str) -> bool:
    """Return whether the character beside a name makes a longer word of the name's edge."""
    return _is_of_a_word(outside) and not (_needs_no_spaces(outside) or _needs_no_spaces(edge))


@lru_cache(maxsize=1 << 14)
def _is_of_a_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


@lru_cache(maxsize=1 << 14)
def _needs_no_spaces(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_WITHOUT_SPACES)
