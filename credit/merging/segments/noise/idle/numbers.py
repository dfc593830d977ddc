"""Numbers that certain looks at one state differ in as others do, although they are carried along.

What is carried from look to look may be a part of the state, such as health, or not, such as where
a window is scrolled to. Two looks hardly ever show the same one, so outcomes are asked about its
size: on which of a few steps it is.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from graphcredit.credit.merging.segments.counts.scale import Scale
from graphcredit.credit.merging.segments.looks.visits import Visits
from graphcredit.credit.merging.segments.noise.idle.claims import Claims
from graphcredit.credit.merging.segments.noise.idle.plausible import plausible
from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.merging.segments.text.parsed import Parsed
from graphcredit.credit.merging.segments.text.tokens import SLOT, Tokens, is_number

_STEPS = 8
_LEAST = 24
"""So many different numbers must be seen in a place."""


class NumberPlace(NamedTuple):
    """Where a number stands: all of a segment but its numbers, and which of these it is."""

    address: str
    form: Tokens
    position: int


@dataclass(frozen=True, slots=True)
class NumbersLeftOut:
    """Leaves numbers out of some places."""

    places: frozenset[NumberPlace] = frozenset()

    def apply(self, part: Segment) -> Segment:
        """Return a segment with slots for these numbers."""
        left_out = {place.position for place, _ in places_in(part) if place in self.places}
        if not left_out:
            return part
        tokens = (SLOT if at in left_out else token for at, token in enumerate(part.tokens))
        return Segment(part.address, tuple(tokens))


def places_in(part: Segment) -> Iterator[tuple[NumberPlace, str]]:
    """Yield each number of a segment with its place."""
    at = [place for place, token in enumerate(part.tokens) if is_number(token)]
    if at:
        form = tuple("#" if place in at else token for place, token in enumerate(part.tokens))
        for place in at:
            yield NumberPlace(part.address, form, place), part.tokens[place]


def find_numbers(parsed: Parsed, visits: Visits, used: frozenset[str]) -> Claims[NumberPlace]:
    """Claim the places of numbers.

    Args:
        parsed: The texts of the nodes.
        visits: All visits of these nodes.
        used: Tokens of actions, which are not claimed.
    """
    values: dict[NumberPlace, set[str]] = defaultdict(set)
    for code in np.unique(parsed.segment).tolist():
        for place, number in places_in(parsed.segments[code]):
            values[place].add(number)
    things = sorted(
        place for place, own in values.items() if len(own) >= _LEAST and used.isdisjoint(own)
    )
    key_of = {place: key for key, place in enumerate(things)}
    found = [
        [(key_of[place], number) for place, number in places_in(part) if place in key_of]
        for part in parsed.segments
    ]
    claims = Claims(
        things=things,
        of_segment=found,
        without=lambda chosen: NumbersLeftOut(frozenset(chosen)),
    )
    step_of = [_steps(values[place]) for place in things]
    by_size = [[(key, step_of[key][number]) for key, number in own] for own in found]
    return replace(claims, of_segment=by_size).only(plausible(claims, parsed, visits))


def _steps(numbers: set[str]) -> dict[str, str]:
    """Return on which of a few steps each number is."""
    texts = sorted(numbers)
    rank = Scale.of([(text,) for text in texts]).rank
    order: Sequence[int] = np.argsort(np.argsort(rank, kind="stable")).tolist()
    return {
        text: str(_STEPS * place // len(texts)) for text, place in zip(texts, order, strict=True)
    }
