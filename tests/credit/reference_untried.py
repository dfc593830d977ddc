"""Slow twin of what is untried: sets and exact fractions for likeness, pairs counted as pairs."""

import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.credit.reference import Group

Tried = dict[str, dict[str, list[tuple[Any, float]]]]
"""Action to the states it was taken at, to where it led there and at what cost."""


def share_of_equal(visits: list[tuple[str, frozenset[str]]], same_state: bool) -> Fraction:
    """Return how often one of the other visits, of the same or another state, has the same list."""
    shares: list[Fraction] = []
    for number, (state, actions) in enumerate(visits):
        others = [
            other_actions == actions
            for other, (other_state, other_actions) in enumerate(visits)
            if other != number and (other_state == state) == same_state
        ]
        if others:
            shares.append(Fraction(sum(others), len(others)))
    return sum(shares, Fraction(0)) / len(shares) if shares else Fraction(1)


def lists_are_of_states(group: Group) -> bool:
    """Return whether the lists of admissible actions say anything of the states of a group."""
    visits = [
        (step["state"], frozenset(step["admissible_actions"]))
        for _, _, step in group.steps()
        if step.get("admissible_actions") is not None
    ]
    is_told_apart = share_of_equal(visits, same_state=False) <= Fraction(1, 2)
    return is_told_apart and share_of_equal(visits, same_state=True) >= Fraction(2, 3)


def possible_actions(group: Group) -> dict[str, set[str]]:
    """Return {state: actions that were logged as admissible on any visit}.

    Nothing is, where the lists of a group say nothing of its states.
    """
    possible: dict[str, set[str]] = {}
    if not lists_are_of_states(group):
        return possible
    for _, _, step in group.steps():
        possible.setdefault(step["state"], set()).update(step.get("admissible_actions") or ())
        possible.setdefault(step["next_state"], set())
    return possible


def jaccard(one: set[str], other: set[str]) -> Fraction:
    return Fraction(len(one & other), len(one | other)) if one | other else Fraction(1)


def alike(one: str, other: str, possible: dict[str, set[str]]) -> Fraction:
    words = jaccard(set(one.split()), set(other.split()))
    return words * jaccard(possible[one], possible[other])


def tried_actions(group: Group) -> Tried:
    tried: Tried = {}
    for name, index, step in group.steps():
        if group.is_valid(name, index):
            outcomes = tried.setdefault(step["action"], {}).setdefault(step["state"], [])
            outcomes.append((group.target(name, index), step["cost"]))
    return tried


def imagined(group: Group) -> list[tuple[Any, Any, float]]:
    """Return (state, where an untried action may lead, at what cost)."""
    possible, tried = possible_actions(group), tried_actions(group)
    edges: list[tuple[Any, Any, float]] = []
    for state, actions in possible.items():
        for action in actions:
            where = tried.get(action, {})
            best = max((alike(state, other, possible) for other in where), default=Fraction(0))
            if state in where or not best:
                continue
            outcomes = [
                (target, cost)
                for other, led in where.items()
                if alike(state, other, possible) == best
                for target, cost in led
                if target != other
            ]
            if len({target for target, _ in outcomes}) == 1:
                edges += [(state, target, float(cost / best)) for target, cost in outcomes]
    return edges


def _things(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return {(word,) for word in words} | {*pairwise(words)}


def novelty(group: Group) -> dict[str, float]:
    """Return N of each state that was seen, in a group without a goal."""
    acted = Counter(step["action"] for _, _, step in group.steps())
    took = {(step["state"], step["action"]) for _, _, step in group.steps()}
    visited = [step["state"] for _, _, step in group.steps()]
    visited += [steps[-1]["next_state"] for steps in group.trajectories.values()]
    is_whole = all(step.get("admissible_actions") is not None for _, _, step in group.steps())
    possible = possible_actions(group) if is_whole else {}
    new: dict[str, list[int]] = {
        state: [acted[action] for action in possible.get(state, ()) if (state, action) not in took]
        for state in visited
    }
    if not any(new.values()):
        shown = Counter(thing for state in visited for thing in _things(state))
        new = {state: [shown[thing] for thing in _things(state)] for state in visited}
    lost = {
        steps[-1]["next_state"]
        for name, steps in group.trajectories.items()
        if steps[-1]["terminated"] and not group.ok(name)
    }
    return {
        state: 0.0 if state in lost else sum((1 + times) ** -2 for times in seen)
        for state, seen in new.items()
    }
