"""Slow reach: the recursion written as a recursion, networkx for distances."""

import math
from functools import cache
from typing import Any

import networkx as nx

from tests.credit.reference import GOAL, Group
from tests.credit.reference_untried import imagined, novelty

Key = tuple[str, int]


def hidden(group: Group) -> float:
    """Return the share of contradictions that history resolves."""
    walked = {
        name: [
            (step["state"], step["action"], group.target(name, index))
            for index, step in enumerate(steps)
        ]
        for name, steps in group.trajectories.items()
    }
    longest = max(map(len, walked.values()))

    def history(name: str, index: int, length: int) -> list[Any]:
        return [None, *walked[name][:index]][-length:]

    resolved = contradicted = 0.0
    led: dict[Any, set[Any]] = {}
    players: dict[Any, set[str]] = {}
    for name, index, _ in group.steps():
        *choice, outcome = walked[name][index]
        led.setdefault(tuple(choice), set()).add(outcome)
        players.setdefault(tuple(choice), set()).add(name)
        others = [
            (other, place)
            for other, place, _ in group.steps()
            if other != name and list(walked[other][place][:2]) == choice
        ]

        def share(of: list[tuple[str, int]], outcome: Any = outcome) -> float:
            return sum(walked[other][place][2] == outcome for other, place in of) / len(of)

        if not others:
            continue
        like = anyone = share(others)
        for length in (2**power for power in range(longest.bit_length())):
            own = history(name, index, length)
            others = [other for other in others if history(*other, length) == own]
            if not others or anyone == 1:
                break
            like = share(others)
        resolved += like - anyone
        contradicted += 1 - anyone
    agreed = sum(len(led[choice]) == 1 and len(players[choice]) > 1 for choice in led)
    return max(0.0, min(1.0, (2 + resolved) / (4 + contradicted + agreed)))


def _joined(group: Group, earlier: Group | None) -> Group:
    """Return the group with the trajectories of earlier iterations beside its own."""
    before = earlier.trajectories if earlier else {}
    return Group({f"earlier {name}": steps for name, steps in before.items()} | group.trajectories)


def _distances(whole: Group, cost: float, imagined: list[tuple[Any, Any, float]]) -> dict[Any, Any]:
    """Return d of every state that has a way; `cost` is the mean cost of a step."""
    edges = [
        (step["state"], whole.target(name, index), step["cost"])
        for name, index, step in whole.steps()
    ]
    edges += imagined
    if not any(map(whole.ok, whole.trajectories)):
        edges += [(state, GOAL, 30 * cost / new) for state, new in novelty(whole).items() if new]
    graph = nx.DiGraph()
    graph.add_node(GOAL)
    for source, target, weight in edges:
        if not graph.has_edge(source, target) or graph[source][target]["cost"] > weight:
            graph.add_edge(source, target, cost=weight)
    return nx.single_source_dijkstra_path_length(graph.reverse(), GOAL, weight="cost")


def progress(group: Group, earlier: Group | None = None) -> dict[Key, float]:
    """Return the step advantage of every step."""
    whole = _joined(group, earlier)
    mean_cost = math.fsum(step["cost"] for _, _, step in group.steps()) / len([*group.steps()])

    def gains(distance: dict[Any, Any]) -> dict[Key, float]:
        found: dict[Key, float] = {}
        for name, index, step in group.steps():
            before = distance.get(step["state"], math.inf)
            after = distance.get(group.target(name, index), math.inf)
            gain = 0.0 if math.isinf(before) else before - after
            found[name, index] = max(-1.0, min(1.0, gain / step["cost"]))
        return found

    walked = _distances(whole, mean_cost, [])
    found = gains(walked)
    if not any(map(whole.ok, whole.trajectories)):
        return found
    bold = gains(_distances(whole, mean_cost, imagined(whole)))
    known = [
        (name, index)
        for name, index, step in group.steps()
        if step["state"] in walked and group.target(name, index) in walked
    ]
    same = sum(abs(bold[key] - found[key]) < 0.5 for key in known)
    return bold if known and same >= 0.7 * len(known) else found


def reach(
    group: Group,
    *,
    doubt: float = 0.7,
    normalize: str = "std",
    earlier: Group | None = None,
) -> dict[Key, float]:
    """Return the advantage of every step.

    Args:
        group: Its trajectories.
        doubt: κ.
        normalize: Whether to scale.
        earlier: Those of its task in earlier iterations of the graph's window.
    """
    whole = _joined(group, earlier)
    chance = (sum(map(group.ok, group.trajectories)) + 0.5) / (len(group.trajectories) + 1)
    horizon = max(map(len, group.trajectories.values()))
    has_goal = any(map(whole.ok, whole.trajectories))
    new = {} if has_goal else novelty(whole)
    leaving: dict[Any, list[Any]] = {}
    for name, index, step in whole.steps():
        leaving.setdefault(step["state"], []).append(whole.target(name, index))

    @cache
    def value(state: Any, left: int) -> float:
        if state == GOAL:
            return 1.0
        if left == 0:
            return 0.0
        targets = leaving.get(state, [])
        reached = math.fsum(value(target, left - 1) for target in targets)
        unknown = chance * new.get(state, 0.0) / (1 + new.get(state, 0.0))
        return (reached + doubt * unknown * left / horizon) / (len(targets) + doubt)

    def of_action(state: Any, action: str, left: int) -> float:
        values = [
            value(group.target(name, index), left - 1)
            for name, index, step in group.steps()
            if step["state"] == state and step["action"] == action
        ]
        return math.fsum(values) / len(values)

    decay = hidden(group) ** (1 / 5)
    scale = math.sqrt(chance * (1 - chance) / horizon) if normalize == "std" else 1.0
    found: dict[Key, float] = {}
    for name, steps in group.trajectories.items():
        following = 0.0
        for index in reversed(range(len(steps))):
            state, left = steps[index]["state"], horizon - index
            before = value(state, left)
            advantage = of_action(state, steps[index]["action"], left) - before
            found[name, index] = (advantage + following) / scale
            gain = value(group.target(name, index), left - 1) - before
            following = decay * (gain + following)
    return found
