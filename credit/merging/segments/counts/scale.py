"""How high values are: numbers by size, other texts by their words and the numbers in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats

_DIGITS = re.compile(r"(\d+)")
_NUMBER = re.compile(r"-?\d+(?:,\d+)*(?:\.\d+)?")

_Part = tuple[int, float, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """The order of some values."""

    rank: Floats
    """[num_values] higher for higher values; 0 for the lowest."""
    has_digits: Bools
    """[num_values] whether a value has digits, so that it may rise and fall."""

    @classmethod
    def of(cls, values: Sequence[tuple[str, ...]]) -> "Scale":
        """Order values, each of which is one text or several."""
        parts = [[part for text in own for part in _parts(text)] for own in values]
        order = sorted(range(len(values)), key=parts.__getitem__)
        rank = np.empty(len(values))
        rank[order] = np.arange(len(values))
        return cls(
            rank=rank,
            has_digits=np.array([any(map(_DIGITS.search, own)) for own in values], bool),
        )


def _parts(text: str) -> list[_Part]:
    """Return what a text is ordered by: a number, or words and whole numbers in turn."""
    if _NUMBER.fullmatch(text):
        return [(0, float(text.replace(",", "")), "")]
    return [
        (1, float(part), "") if part.isdecimal() else (2, 0.0, part) for part in _DIGITS.split(text)
    ]
