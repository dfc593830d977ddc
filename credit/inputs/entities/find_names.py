"""A search for many names in texts, as whole words, in one pass over each text.

Case and white space do not matter, nor whether an accented letter is one code point or two. Every
name that stands there counts, one inside another too: "New York City" has "New York" and "York". A
name is whole where no letter, digit or underscore follows or goes before; scripts that put no
spaces between words, such as Chinese and Thai, have no such edges, so there it is enough to occur.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphcredit.credit.steps.arrays import Bools, Ints, ranges, starts_of_runs
from graphcredit.store.errors import MissingDependencyError
from graphcredit.store.extras import how_to_install

_TOGETHER = 1 << 12
"""Texts that are searched together: their buffers should stay in the processor's caches."""

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


_FOLDED_ASCII = bytes(
    ord(" ") if code < 128 and chr(code).isspace() else code for code in bytes(range(256)).lower()
)
"""For each byte: lower case, and every white space a space; other than ASCII stays as it is."""


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
        of_owner: dict[int, dict[bytes, list[int]]] = {}
        for owner, name, meaning in names:
            of_owner.setdefault(owner, {}).setdefault(fold(name).encode(), []).append(meaning)
        self._automata: dict[int, tuple[Any, int]] = {}
        meanings: list[list[int]] = []
        for owner, of_name in of_owner.items():
            of_name.pop(b"", None)
            self._automata[owner] = _automaton(list(of_name)), len(meanings)
            meanings += of_name.values()
        self._num_meanings = np.array([len(several) for several in meanings], np.int64)
        self._meanings = np.array(list(chain.from_iterable(meanings)), np.int64)

    def find(self, owner: Ints, texts: pa.Array) -> tuple[Ints, Ints]:
        """Return what is named in some texts.

        Args:
            owner: [n] whose text each one is, equal ones adjacent.
            texts: [n] the texts; null names nothing.

        Returns:
            Positions in `texts`, ascending, and what is named there, ascending within a text and
            each once.
        """
        pairs = [np.zeros((2, 0), np.int64)]
        for first in range(0, len(owner), _TOGETHER):
            some = slice(first, first + _TOGETHER)
            text, name = self._whole_names(owner[some], texts[some])
            pairs.append(np.stack([text + first, name]))
        text, name = np.concatenate(pairs, axis=1)
        hit, meaning = ranges(self._num_meanings, name)
        span = self._meanings.max(initial=0) + 1
        return np.divmod(np.unique(text[hit] * span + self._meanings[meaning]), span)

    def _whole_names(self, owner: Ints, texts: pa.Array) -> tuple[Ints, Ints]:
        """Return positions in `texts`, ascending, and the number of a name each time."""
        folded = _Folded.of(texts)
        name, start, end = self._matches(owner, folded)
        text = np.searchsorted(folded.start, start, side="right") - 1
        is_whole = folded.are_whole(start, end, text)
        return text[is_whole], name[is_whole]

    def _matches(self, owner: Ints, folded: "_Folded") -> Ints:
        """Return [3, num_matches] number of the name, and its first byte and the one beyond."""
        view = folded.letters.data
        names = [np.zeros((0, 3), np.int64)]
        for first, stop in pairwise(starts_of_runs(owner).tolist()):
            automaton, first_name = self._automata.get(int(owner[first]), (None, 0))
            if automaton:
                begin = int(folded.start[first])
                window = view[begin : int(folded.start[stop])]
                matches = automaton.find_matches_as_indexes(window, overlapping=True)
                here = np.array([first_name, begin, begin])
                names.append(np.array(matches, np.int64).reshape(-1, 3) + here)
        return np.concatenate(names).T


def _automaton(names: list[bytes]) -> Any:
    try:
        from ahocorasick_rs import BytesAhoCorasick
    except ImportError:
        raise MissingDependencyError(
            "recognising entities needs the package 'ahocorasick-rs', which is not installed: "
            f"{how_to_install('er')}"
        ) from None
    return BytesAhoCorasick(names)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Folded:
    """Many texts as they are compared, but for a space before or after one, in one buffer."""

    letters: NDArray[np.uint8]
    """[num_bytes + 4] UTF-8 of all texts, one after the other, and four spaces."""
    start: Ints
    """[num_texts + 1] where each text starts."""

    @classmethod
    def of(cls, texts: pa.Array) -> "_Folded":
        """Fold texts: ASCII all at once, others one by one."""
        is_other = pc.invert(pc.string_is_ascii(texts))
        if pc.any(is_other).as_py():
            others = [fold(text) for text in texts.filter(is_other).to_pylist()]
            texts = pc.replace_with_mask(texts, is_other, pa.array(others, texts.type))
        texts = texts.cast(pa.large_string())
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
        text = b"".join([memoryview(data or b"")[bounds[0] : bounds[-1]], b"    "])
        letters = np.frombuffer(text.translate(_FOLDED_ASCII), np.uint8)
        start = bounds - bounds[0]
        is_space = letters[: start[-1]] == ord(" ")
        extra = np.flatnonzero(is_space[1:] & is_space[:-1]) + 1
        return cls(letters=np.delete(letters, extra), start=start - np.searchsorted(extra, start))

    def are_whole(self, start: Ints, end: Ints, text: Ints) -> Bools:
        """Return whether no word goes on before `start` or after `end`, within one text."""
        goes_on_before = self._goes_on(start - 1, start) & (start > self.start[text])
        goes_on_after = self._goes_on(end, end - 1) & (end < self.start[text + 1])
        return ~(goes_on_before | goes_on_after) & (end <= self.start[text + 1])

    def _goes_on(self, outside: Ints, edge: Ints) -> Bools:
        """Return whether the character beside a name makes a longer word of the name's edge."""
        beside = self._characters(outside)
        goes_on = _of_each(_is_of_a_word, beside)
        unsure = np.flatnonzero(goes_on)
        for characters in (beside[unsure], self._characters(edge[unsure])):
            goes_on[unsure] &= ~_of_each(_needs_no_spaces, characters)
        return goes_on

    def _characters(self, position: Ints) -> NDArray[np.uint32]:
        """Return the UTF-8 of the character that a byte belongs to, padded with zeros."""
        for _ in range(3):
            position = position - ((self.letters[position] & 0xC0) == 0x80)
        lead = self.letters[position]
        length = 1 + (lead >= 0xC0).astype(np.int64) + (lead >= 0xE0) + (lead >= 0xF0)
        four = self.letters[position[:, None] + np.arange(4)]
        return (
            np.where(np.arange(4) < length[:, None], four, 0).astype(np.uint8).view(np.uint32)[:, 0]
        )


def _of_each(judge: Callable[[str], bool], characters: NDArray[np.uint32]) -> Bools:
    distinct, place = np.unique(characters, return_inverse=True)
    texts = [code.tobytes().rstrip(b"\0").decode() or "\0" for code in distinct]
    return np.array([judge(text) for text in texts], bool)[place]


@lru_cache(maxsize=1 << 14)
def _is_of_a_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


@lru_cache(maxsize=1 << 14)
def _needs_no_spaces(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_WITHOUT_SPACES)
