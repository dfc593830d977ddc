"""Detours of a plan, on maps drawn by hand."""

from dataclasses import dataclass, field

from graphcredit.collector.environments.textworld.walkthrough import without_detours


@dataclass(frozen=True)
class Fact:
    name: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Action:
    name: str
    added: set[Fact] = field(default_factory=set)
    removed: set[Fact] = field(default_factory=set)


def _free(a: str, b: str) -> set[Fact]:
    return {Fact("free", (a, b)), Fact("free", (b, a))}


def _go(direction: str, start: str, goal: str) -> tuple[str, Action]:
    moved = Action(f"go/{direction}", {Fact("at", ("P", goal))}, {Fact("at", ("P", start))})
    return f"go {direction}", moved


SQUARE = {
    # A B    A is west of B, C is south of B, D is west of C; A and D are one above the other
    # D C
    Fact("west_of", ("A", "B")),
    Fact("north_of", ("B", "C")),
    Fact("west_of", ("D", "C")),
    Fact("north_of", ("A", "D")),
    *_free("A", "B"),
    *_free("B", "C"),
    *_free("C", "D"),
    Fact("at", ("P", "A")),
}
AROUND = [_go("east", "A", "B"), _go("south", "B", "C"), _go("west", "C", "D")]
TAKE = ("take coin", Action("take"))


def _shortened(plan: list[tuple[str, Action]], facts: set[Fact]) -> list[str]:
    return without_detours([command for command, _ in plan], [action for _, action in plan], facts)


def test_a_walk_around_a_loop_becomes_the_step_across():
    assert _shortened([*AROUND, TAKE], SQUARE | _free("A", "D")) == ["go south", "take coin"]


def test_a_closed_door_is_no_way_across():
    facts = SQUARE | {Fact("free", ("A", "D"))}
    assert _shortened([*AROUND, TAKE], facts) == ["go east", "go south", "go west", "take coin"]


def test_a_door_that_the_plan_opens_is_a_way_from_then_on():
    opened = ("open door", Action("open/d", added=_free("A", "D")))
    assert _shortened([opened, *AROUND, TAKE], SQUARE) == ["open door", "go south", "take coin"]
    assert _shortened([*AROUND, opened], SQUARE)[:3] == ["go east", "go south", "go west"]


def test_walking_there_and_back_is_left_out():
    there_and_back = [_go("east", "A", "B"), _go("west", "B", "A")]
    assert _shortened([*there_and_back, TAKE], SQUARE) == ["take coin"]


def test_walks_before_and_after_an_action_are_shortened_each_for_itself():
    plan = [*AROUND, TAKE, _go("east", "D", "C"), _go("north", "C", "B"), _go("west", "B", "A")]
    facts = SQUARE | _free("A", "D")
    assert _shortened(plan, facts) == ["go south", "take coin", "go north"]


def test_an_empty_plan_stays_empty():
    assert _shortened([], SQUARE) == []
