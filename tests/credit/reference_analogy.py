"""Slow analogy: sets and exact fractions for likeness, networkx for distances."""

import math
from fractions import Fraction
from typing import Any

import networkx as nx

from tests.credit.reference import GOAL, Group, relative

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


def distances(group: Group, search_cost: float) -> dict[Any, float]:
    """Return d of every state; those without a path are left out."""
    has_goal = any(group.ok(name) for name in group.trajectories)
    possible, tried = possible_actions(group), tried_actions(group)
    edges: list[tuple[Any, Any, float]] = [
        (step["state"], group.target(name, index), step["cost"])
        for name, index, step in group.steps()
    ]
    for state, actions in possible.items():
        novelty = Fraction(0)
        for action in actions:
            where = tried.get(action, {})
            if state in where:
                continue
            best = max((alike(state, other, possible) for other in where), default=Fraction(0))
            novelty += 1 - best
            edges += [
                (state, target, cost / best)
                for other, outcomes in where.items()
                if best and alike(state, other, possible) == best
                for target, cost in outcomes
                if target != other
            ]
        if novelty and not has_goal:
            edges.append((state, GOAL, search_cost / novelty))
    graph = nx.DiGraph()
    graph.add_node(GOAL)
    for source, target, cost in edges:
        if not graph.has_edge(source, target) or graph[source][target]["cost"] > cost:
            graph.add_edge(source, target, cost=float(cost))
    return nx.single_source_dijkstra_path_length(graph.reverse(), GOAL, weight="cost")


def step_rewards(group: Group, search_cost: float) -> dict[tuple[str, int], float]:
    distance = distances(group, search_cost)

    def reward(name: str, index: int) -> float:
        step = group.trajectories[name][index]
        before = distance.get(step["state"], math.inf)
        if math.isinf(before):
            return 0.0
        gain = before - distance.get(group.target(name, index), math.inf)
        return max(gain / step["cost"], -1.0)

    return {(name, index): reward(name, index) for name, index, _ in group.steps()}


def analogy(
    group: Group, *, search_cost: float = 30.0, normalize: str = "std"
) -> dict[tuple[str, int], float]:
    """Return the advantage of every step."""
    rewards = step_rewards(group, search_cost)
    return dict(zip(rewards, relative(list(rewards.values()), normalize), strict=True))
