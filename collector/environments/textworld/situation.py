"""When a TextWorld game is again where it was: the same things, in the same places and order.

A game's facts say all that its commands depend on, but for one thing: what lies in a place is told
in the order in which it came there, and the facts have none. So the order is kept here.
"""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

_Place = tuple[str, str, bool]
"""What a fact says, of which place, and whether of the player."""


class Situations:
    """Follows one game from its beginning."""

    def __init__(self) -> None:
        """Know of nothing."""
        self._stayed: dict[_Place, set[str]] = {}
        self._came: dict[_Place, list[str]] = {}
        self._is_sure = True

    def begin(self, facts: Iterable[Any]) -> None:
        """Begin where every game begins: what is there is in some order, always the same."""
        self._stayed = _places(facts)
        self._came = {}
        self._is_sure = True

    def follow(self, facts: Iterable[Any]) -> None:
        """Go on to the facts after a command."""
        stayed, came = self._stayed, self._came
        self._stayed, self._came = {}, {}
        for place, things in _places(facts).items():
            self._stayed[place] = stayed.get(place, set()) & things
            before = [thing for thing in came.get(place, ()) if thing in things]
            new = things.difference(before, self._stayed[place])
            # Which of several came first is not known; from then on, no situation is.
            self._is_sure = self._is_sure and len(new) <= 1
            self._came[place] = [*before, *new]

    @property
    def arrangement(self) -> bytes | None:
        """A digest of what is where; None if the order is not known.

        It is of what was always in each place, and of what came there, in the order in which it
        came. Whole, a situation would be the largest part of what is remembered of a step.
        """
        if not self._is_sure:
            return None
        places = sorted(
            (place, sorted(stayed), self._came.get(place, []))
            for place, stayed in self._stayed.items()
        )
        return blake2b(repr(places).encode(), digest_size=16).digest()


def _places(facts: Iterable[Any]) -> dict[_Place, set[str]]:
    """Return things by their place: `in(apple, box)` and `locked(box)` alike, the last is where.

    The player is apart from the things: nobody is told that they are there.
    """
    places: defaultdict[_Place, set[str]] = defaultdict(set)
    for fact in facts:
        *things, place = (argument.name for argument in fact.arguments)
        places[fact.name, place, things == ["P"]].add(" ".join(things))
    return places
