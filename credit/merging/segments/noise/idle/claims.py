"""What may be idle: claims, each with a number, and what would be left out if they hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from graphcredit.credit.merging.segments.text.parse import Segment
from graphcredit.credit.steps.arrays import Bools

T = TypeVar("T")


class Reduction(Protocol):
    """Leaves something out."""

    def apply(self, part: Segment) -> Segment:
        """Return what is left of a segment; without tokens and address, nothing is."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims(Generic[T]):
    """Claims of one kind, each that the values of one thing say nothing of the state."""

    things: Sequence[T]
    """What each claim is of, such as a frame or a family of words."""
    of_segment: Sequence[Sequence[tuple[int, str]]]
    """[num_segments] the claims that each segment is of, by number, with its value for each."""
    without: Callable[[Sequence[T]], Reduction]
    """Returns what leaves out the values of some things."""

    def reduction(self, holds: Bools) -> Reduction:
        """Return what leaves out the values of those claims that hold. `holds` is [num_claims]."""
        return self.without([self.things[number] for number in np.flatnonzero(holds).tolist()])

    def only(self, which: Bools) -> "Claims[T]":
        """Return some of the claims. `which` is [num_claims]."""
        kept = np.flatnonzero(which).tolist()
        number = {old: new for new, old in enumerate(kept)}
        return Claims(
            things=[self.things[old] for old in kept],
            of_segment=[
                [(number[old], value) for old, value in own if old in number]
                for own in self.of_segment
            ],
            without=self.without,
        )


def numbered(kinds: Sequence[Claims[Any]]) -> list[list[tuple[int, str]]]:
    """Return [num_segments] the claims of some kinds, numbered on, with the values of each."""
    first_of_kind = np.cumsum([0, *(len(own.things) for own in kinds)]).tolist()
    return [
        [
            (first + key, value)
            for first, own in zip(first_of_kind, found, strict=False)
            for key, value in own
        ]
        for found in zip(*(own.of_segment for own in kinds), strict=True)
    ]
