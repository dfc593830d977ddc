"""Places of typed tokens, described from the narrowest to the widest.

What is learned of one line holds for the next like it: the narrowest description of a place that
there is a verdict on counts. The widest two are for what is not a number: numbers mean too much.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from graphcredit.credit.merging.segments.parse import ATTRIBUTE, COLOURS, NUMBERED
from graphcredit.credit.merging.segments.statistics import Sightings
from graphcredit.credit.merging.segments.tokens import Line, kind_of, neighbours, size_of, template

Place: TypeAlias = tuple[str, ...]

NUM_LEVELS = 4
LINE_NUMBER = "line number"
"""The kind of the first number of lines that are numbered one after the other."""
_WIDE = frozenset({"identifier", "date", "time", "ago", "attribute", "colours", LINE_NUMBER})
"""Kinds that are judged by less than the tokens on both sides."""


@lru_cache(1 << 16)
def _around(address: str, pieces: tuple[str, ...]) -> list[tuple[Place, Place, Place]]:
    """Return the three narrowest descriptions of each slot of a line."""
    form = template(pieces)
    return [
        (
            ("line", address, form, str(number)),
            ("between", address, left, right),
            ("after", address, left),
        )
        for number, (left, right) in enumerate(neighbours(form))
    ]


def kind_at(line: Line, number: int) -> str:
    """Return the kind of a value in a line, given its position."""
    if not number and line.address.endswith(NUMBERED):
        return LINE_NUMBER
    if line.address.endswith(COLOURS):
        return "colours"
    return "attribute" if ATTRIBUTE in line.address else kind_of(line.values[number])


def places_of(line: Line) -> list[tuple[Place, ...]]:
    """Return the descriptions of the place of each value, the narrowest first."""
    result: list[tuple[Place, ...]] = []
    for number, around in enumerate(_around(line.address, line.pieces)):
        kind = kind_at(line, number)
        # Only of a structure does the address alone say where a value stands.
        widest = ("kind", line.address, kind)
        result.append((*around, widest) if kind in _WIDE else around[:2])
    return result


def sightings_at(
    level: int, texts: Sequence[Iterable[Line]], nodes: Iterable[int]
) -> tuple[Sightings, list[Place], list[str]]:
    """Return the values at all places, by one description of them.

    Args:
        level: Of the descriptions.
        texts: The lines of each node's text.
        nodes: [num_observations] the node of each observation.

    Returns:
        The sightings, the places, and the kind of most of the values of each.
    """
    code_of: dict[Place, int] = {}
    kinds: list[defaultdict[str, int]] = []
    values: dict[tuple[str, ...], int] = {}
    of_text: list[list[tuple[int, tuple[str, ...], int]]] = []
    for lines in texts:
        here: defaultdict[int, list[str]] = defaultdict(list)
        for line in lines:
            for number, descriptions in enumerate(places_of(line)):
                if level < len(descriptions):
                    place = code_of.setdefault(descriptions[level], len(code_of))
                    if place == len(kinds):
                        kinds.append(defaultdict(int))
                    kinds[place][kind_at(line, number)] += 1
                    here[place].append(line.values[number])
        names = ((place, tuple(own)) for place, own in here.items())
        of_text.append(
            [(place, own, values.setdefault(own, len(values) + 1)) for place, own in names]
        )
    rows = [
        (place, number, value, own)
        for number, node in enumerate(nodes)
        for place, own, value in of_text[node]
    ]
    place, observation, value, names = zip(*rows, strict=True) if rows else ((), (), (), ())
    sightings = Sightings(
        place=np.array(place, np.int64),
        observation=np.array(observation, np.int64),
        value=np.array(value, np.int64),
        size=np.array([size_of(own[0]) for own in names], np.float64),
        names=names,
        num_places=len(code_of),
    )
    return sightings, list(code_of), [max(sorted(of), key=of.__getitem__) for of in kinds]
