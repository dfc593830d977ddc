"""Slow reach: the recursion written as a recursion, networkx for distances."""

import math
from functools import cache
from typing import Any

import networkx as nx

from tests.credit.reference import GOAL, Group
from tests.credit.reference_untried import imagined, novelty

Key = tuple[str, int]


def earned(whole: Group, group: Group) -> dict[Key, float]:
    """Return r' of every step of a group and of earlier iterations, in the group's units."""
    returns = group.returns()
    least, greatest = min(returns.values()), max(returns.values())
    is_even = greatest - least <= 1e-12 * group.size()
    worth: dict[Key, float] = {}
    for name, index, step in whole.steps():
        is_last = index == len(whole.trajectories[name]) - 1
        if is_even:
            worth[name, index] = float(is_last and whole.ok(name))
        else:
            worth[name, index] = (step["reward"] - least * is_last) / (greatest - least)
    return worth


def surprise(group: Group, worth: dict[Key, float]) -> float:
    """Return the share of the returns' variance that like steps of others did not foretell."""
    kinds: dict[Any, list[Key]] = {}
    for name, index, step in group.steps():
        is_last = index == len(group.trajectories[name]) - 1
        kind = (step["state"], step["action"], group.target(name, index), is_last)
        kinds.setdefault(kind, []).append((name, index))
    total = 0.0
    for keys in kinds.values():
        for key in keys:
            others = [worth[other] for other in keys if other[0] != key[0]]
            if others:
                total += (worth[key] - math.fsum(others) / len(others)) ** 2
    returns = [
        math.fsum(worth[name, index] for index in range(len(steps)))
        for name, steps in group.trajectories.items()
    ]
    mean = math.fsum(returns) / len(returns)
    return total / (math.fsum((each - mean) ** 2 for each in returns) + 0.5)


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
    worth, number = earned(whole, group), len(group.trajectories) + 1
    returns = [
        math.fsum(worth[name, index] for index in range(len(steps)))
        for name, steps in group.trajectories.items()
    ]
    middle = (math.fsum(returns) + 0.5) / number
    variance = (math.fsum(each**2 for each in returns) + 0.5) / number - middle**2
    horizon = max(map(len, group.trajectories.values()))
    is_hopeful = not any(map(whole.ok, whole.trajectories)) and max(returns) <= 0
    new = novelty(whole) if is_hopeful else {}
    failed = [name for name in group.trajectories if not group.ok(name)]
    failures = failed if max(returns) > 0 else []
    end = way = 0.0
    if failures:
        lasts = [worth[name, len(group.trajectories[name]) - 1] for name in failures]
        end = math.fsum(lasts) / len(failures)
        sums = [worth[name, i] for name in failures for i in range(len(group.trajectories[name]))]
        way = math.fsum(sums) / len(failures) - end
    leaving: dict[Any, list[Any]] = {}
    for name, index, step in whole.steps():
        led = (worth[name, index], whole.target(name, index))
        leaving.setdefault(step["state"], []).append(led)

    def total(state: Any, left: int) -> float:
        """Return what the steps from a state earned from there, and the unknown beside them."""
        unknown = 0.5 / number * new.get(state, 0.0) / (1 + new.get(state, 0.0))
        if state not in leaving:
            return doubt * unknown * left / horizon
        reached = math.fsum(reward + value(target, left - 1) for reward, target in leaving[state])
        return reached + doubt * ((way + unknown) * left / horizon + end)

    @cache
    def value(state: Any, left: int) -> float:
        if state == GOAL or left == 0:
            return 0.0
        return total(state, left) / (len(leaving.get(state, [])) + doubt)

    def of_action(state: Any, action: str, left: int) -> float:
        values = [
            worth[name, index] + value(group.target(name, index), left - 1)
            for name, index, step in group.steps()
            if step["state"] == state and step["action"] == action
        ]
        return math.fsum(values) / len(values)

    share = min(1.0, max(hidden(group), surprise(group, worth)))
    scale = math.sqrt(variance / horizon) if normalize == "std" else 1.0
    found: dict[Key, float] = {}
    for name, steps in group.trajectories.items():
        gains: list[float] = []
        for index in reversed(range(len(steps))):
            state, left = steps[index]["state"], horizon - index
            target = group.target(name, index)
            tail = math.fsum(
                ((1 - share**2) * share ** (later / 5) + share**2) * gain
                for later, gain in enumerate(reversed(gains), start=1)
            )
            worth_here = of_action(state, steps[index]["action"], left)
            others = total(state, left) - worth_here
            before = others / (len(leaving[state]) - 1 + doubt)
            found[name, index] = (worth_here - before + tail) / scale
            gains.append(worth[name, index] + value(target, left - 1) - value(state, left))
    return found
