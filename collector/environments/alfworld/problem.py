"""The planning problem of a state, without the things that no plan needs, so that plans are fast.

A goal speaks of objects and places by their types. A plan needs the objects of these types and what
is carried; the places where such an object is, and those of the goal's types and of the types that
the rules name (a sink, a fridge). If something else is carried, it must be put down: here, or at a
place that is open. The agent can go from anywhere to anywhere, so of empty places that are alike,
one is enough, and where the agent starts is of no matter if nothing of all this is there.

A published game has 20 to 60 objects and 10 to 50 places, of which a plan needs 5 to 10. With those
alone the planner needs milliseconds, and not up to 13 seconds, and many states have one problem.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_TYPE = re.compile(r"\w+type\b")

_LEFT_OUT = frozenset({"object", "receptacle", "location"})
"""Sorts of things that are left out where no plan needs them."""

Fact = tuple[str, ...]
"""A relation and its things, in lower case."""


def read_fact(text: str) -> Fact:
    """Return a fact that the planner writes as `relation(thing, thing)`."""
    relation, _, things = text.rstrip(")").partition("(")
    return (relation, *filter(None, things.split(", ")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What never changes in a game."""

    things: dict[str, str]
    """Every thing with its sort: object, receptacle, location, …"""
    constant: frozenset[Fact]
    """Facts that no action changes."""
    goal: str
    """The rest of the problem, from its goal on."""
    named: frozenset[str]
    """Types that the goal names."""
    used: frozenset[str]
    """Types that the rules name."""

    @classmethod
    def read(cls, task: Any, domain: str, text: str) -> "Problem":
        """Read a problem."""
        changing = {e.literal.predicate for action in task.actions for e in action.effects}
        facts = {(a.predicate, *a.args) for a in task.init if hasattr(a, "predicate")}
        goal = text.lower().partition("(:goal")[2]
        return cls(
            things={thing.name: thing.type_name for thing in task.objects},
            constant=frozenset(f for f in facts if f[0] not in {*changing, "="}),
            goal=f"(:goal{goal}",
            named=frozenset(_TYPE.findall(goal)),
            used=frozenset(_TYPE.findall(domain.lower())),
        )

    def at(self, truths: Iterable[str], *, every_place: bool = False) -> str:
        """Return the problem of a state, in PDDL; the same text for states with the same plans.

        Args:
            truths: The facts that can change and hold, as the planner writes them.
            every_place: Whether to keep all places, as is needed if the few have no plan.
        """
        facts = [*self.constant, *map(read_fact, truths)]
        objects = self._objects(facts)
        places = self._places(facts, objects, every_place)
        stands = {a: b for _, a, b in _of(facts, "receptacleatlocation") if a in places}
        facts = [f if f[0] != "atlocation" else self._start(f, stands.values()) for f in facts]
        kept = {*objects, *places, *stands.values()}
        kept |= {f[2] for f in _of(facts, "atlocation")}
        kept |= {thing for thing, sort in self.things.items() if sort not in _LEFT_OUT}
        return self._written(facts, kept, self._types(facts, {*objects, *places}))

    def _objects(self, facts: Collection[Fact]) -> set[str]:
        wanted = {a for _, a, kind in _of(facts, "objecttype") if kind in self.named}
        return wanted | {thing for _, _, thing in _of(facts, "holds")}

    def _places(self, facts: Collection[Fact], objects: set[str], every_place: bool) -> set[str]:
        kinds = {place: kind for _, place, kind in _of(facts, "receptacletype")}
        if every_place:
            return {*kinds}
        here = {location for _, _, location in _of(facts, "atlocation")}
        near = {p for _, p, where in _of(facts, "receptacleatlocation") if where in here}
        filled = {place for _, thing, place in _of(facts, "inreceptacle") if thing in objects}
        openable, opened = ({f[1] for f in _of(facts, r)} for r in ("openable", "opened"))

        def one_of_each(places: Iterable[str]) -> set[str]:
            """Return the first place of each type that is open, that is closed, ..."""
            alike = {
                (kinds[p], p in openable, p in opened): p for p in sorted(places, reverse=True)
            }
            return {*alike.values()}

        needed = {p for p, kind in kinds.items() if kind in self.named | self.used}
        needed = filled | (needed & near) | one_of_each(needed - filled - near)
        wanted = {a for _, a, kind in _of(facts, "objecttype") if kind in self.named}
        if any(thing not in wanted for _, _, thing in _of(facts, "holds")):
            needed |= near | one_of_each(kinds.keys() - openable.difference(opened) - near)
        return needed

    def _start(self, fact: Fact, stands: Collection[str]) -> Fact:
        """Return where the agent is; all locations without a place that is needed are one."""
        relation, agent, location = fact
        if location in stands:
            return fact
        free = (t for t, sort in self.things.items() if sort == "location" and t not in stands)
        return relation, agent, min(free)

    def _types(self, facts: Collection[Fact], kept: set[str]) -> set[str]:
        relations = ("objecttype", "receptacletype")
        return {f[2] for relation in relations for f in _of(facts, relation) if f[1] in kept}

    def _written(self, facts: Collection[Fact], kept: set[str], types: set[str]) -> str:
        told = sorted(
            f"({' '.join(fact)})"
            for fact in facts
            if kept.issuperset(fact[1:]) and (fact[0] != "cancontain" or types.issuperset(fact[1:]))
        )
        things = sorted(f"{thing} - {self.things[thing]}" for thing in kept)
        return "\n".join(
            [
                *("(define (problem state)", "(:domain alfred)", "(:objects", *things, ")"),
                *("(:init", "(= (total-cost) 0)", *told, ")", self.goal),
            ]
        )


def _of(facts: Iterable[Fact], relation: str) -> Iterator[Fact]:
    return (fact for fact in facts if fact[0] == relation)
