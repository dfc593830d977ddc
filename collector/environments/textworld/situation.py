"""Recognise when a TextWorld game returns to an earlier situation.

The situation is the same if the same things are in the same places, in the same order. The facts of
a game have everything that its commands depend on, except that order: a place lists its things in
the order in which they came there. So the order is tracked here.
"""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

_Place = tuple[str, str, bool]
"""Name of a fact, its place, and whether it is about the player."""


class Situations:
    """Tracks the order of things in one game, from its beginning."""

    def __init__(self) -> None:
        """Start without facts."""
        self._stayed: dict[_Place, set[str]] = {}
        self._came: dict[_Place, list[str]] = {}
        self._is_sure = True

    def begin(self, facts: Iterable[Any]) -> None:
        """Start a game: the initial order of things is unknown, but the same in every episode."""
        self._stayed = _places(facts)
        self._came = {}
        self._is_sure = True

    def follow(self, facts: Iterable[Any]) -> None:
        """Take in the facts after a command."""
        stayed, came = self._stayed, self._came
        self._stayed, self._came = {}, {}
        for place, things in _places(facts).items():
            self._stayed[place] = stayed.get(place, set()) & things
            before = [thing for thing in came.get(place, ()) if thing in things]
            new = things.difference(before, self._stayed[place])
            # If several came at once, their order is unknown, and so is every later situation.
            self._is_sure = self._is_sure and len(new) <= 1
            self._came[place] = [*before, *new]

    @property
    def arrangement(self) -> bytes | None:
        """A digest of the things in all places; None if their order is unknown.

        For each place it covers the things that were always there, and those that came there, in
        order. A digest saves memory: the full situation would be the largest part of a cached step.
        """
        if not self._is_sure:
            return None
        places = sorted(
            (place, sorted(stayed), self._came.get(place, []))
            for place, stayed in self._stayed.items()
        )
        return blake2b(repr(places).encode(), digest_size=16).digest()


def _places(facts: Iterable[Any]) -> dict[_Place, set[str]]:
    """Return things by place, for `in(apple, box)` and `locked(box)` alike: the place is last.

    Facts about the player are kept apart: descriptions of a place do not list the player.
    """
    places: defaultdict[_Place, set[str]] = defaultdict(set)
    for fact in facts:
        *things, place = (argument.name for argument in fact.arguments)
        places[fact.name, place, things == ["P"]].add(" ".join(things))
    return places
