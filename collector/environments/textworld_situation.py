"""When a TextWorld game is again where it was: the same things, in the same places and order.

A game's facts say all that its commands depend on, but for one thing: what lies in a place is told
in the order in which it came there, and the facts have none. So the order is kept here.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

Arrangement = frozenset[Hashable]
"""For each place: what was always there, and what came there, in the order in which it came."""


class Situations:
    """Follows one game from its beginning."""

    def __init__(self) -> None:
        """Know of nothing."""
        self._stayed: dict[Hashable, set[str]] = {}
        self._came: dict[Hashable, list[str]] = {}
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
    def arrangement(self) -> Arrangement | None:
        """What is where; None if the order is not known."""
        if not self._is_sure:
            return None
        return frozenset(
            (place, frozenset(stayed), tuple(self._came.get(place, ())))
            for place, stayed in self._stayed.items()
        )


def _places(facts: Iterable[Any]) -> dict[Hashable, set[str]]:
    """Return things by their place: `in(apple, box)` and `locked(box)` alike, the last is where.

    The player is apart from the things: nobody is told that they are there.
    """
    places: defaultdict[Hashable, set[str]] = defaultdict(set)
    for fact in facts:
        *things, place = (argument.name for argument in fact.arguments)
        places[fact.name, place, things == ["P"]].add(" ".join(things))
    return places
