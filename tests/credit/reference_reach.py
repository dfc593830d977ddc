"""Slow reach: one equation for each state, sums as they are written, networkx for distances."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import networkx as nx
import numpy as np

from tests.credit.reference import GOAL, Group
from tests.credit.reference_untried import imagined, novelty

Key = tuple[str, int]


def earned(whole: Group, group: Group) -> dict[Key, float]:
    """Return r' of every step of a group, in its units."""
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


def hidden(group: Group, corridors: set[Any]) -> float:
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
    agreed = sum(
        len(led[choice]) == 1 and len(players[choice]) > 1 and choice[0] not in corridors
        for choice in led
    )
    return max(0.0, min(1.0, (2 + resolved) / (4 + contradicted + agreed)))


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


def progress(group: Group) -> dict[Key, float]:
    """Return the step advantage of every step."""
    whole = group
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


def values(
    whole: Group, worth: dict[Key, float], sure: set[Any], unknown: dict[Any, float], doubt: float
) -> dict[Any, float]:
    """Return V of every state that a step left, by one equation for each.

    Args:
        whole: The group.
        worth: r' of each step.
        sure: States without doubt.
        unknown: e(s).
        doubt: κ elsewhere.
    """
    place = {state: number for number, state in enumerate(unknown)}
    matrix, right = np.zeros((len(place), len(place))), np.zeros(len(place))
    for state, row in place.items():
        if state not in sure:
            matrix[row, row] += doubt
            right[row] += doubt * unknown[state]
    for name, index, step in whole.steps():
        row = place[step["state"]]
        matrix[row, row] += 1
        right[row] += worth[name, index]
        if index < len(whole.trajectories[name]) - 1:
            matrix[row, place[step["next_state"]]] -= 1
    return dict(zip(unknown, np.linalg.solve(matrix, right).tolist(), strict=True))


def mean_of(numbers: Iterable[float]) -> float:
    """Return the mean; 0 of nothing."""
    found = list(numbers)
    return math.fsum(found) / len(found) if found else 0.0


def by(kind: Callable[[Key], Any], keys: Iterable[Key]) -> dict[Any, list[Key]]:
    """Return the steps of each kind."""
    found: dict[Any, list[Key]] = {}
    for key in keys:
        found.setdefault(kind(key), []).append(key)
    return found


def weights(
    group: Group, beyond: dict[Key, float], variance: float, share: float
) -> dict[Any, float]:
    """Return w(s); `beyond` is what followed each step beyond the graph's expectation."""
    steps = {(name, index): step for name, index, step in group.steps()}
    visits: dict[Any, dict[str, list[float]]] = {}
    for (state, action, _), keys in by(
        lambda key: (steps[key]["state"], steps[key]["action"], key[0]), steps
    ).items():
        visit = mean_of(beyond[key] for key in keys)
        visits.setdefault(state, {}).setdefault(action, []).append(visit)
    choices = {state: actions for state, actions in visits.items() if len(actions) > 1}
    within = freedom = 0.0
    between = dict.fromkeys(choices, 0.0)
    for state, actions in choices.items():
        middle = mean_of(visit for own in actions.values() for visit in own)
        for own in actions.values():
            between[state] += len(own) * (mean_of(own) - middle) ** 2
            within += math.fsum((visit - mean_of(own)) ** 2 for visit in own)
            freedom += len(own) - 1
    prior = variance + 1 / 4 / (len(group.trajectories) + 1)
    noise = (within + 2 * prior) / (freedom + 2)
    found: dict[Any, float] = {}
    for state, actions in visits.items():
        ratio = (between.get(state, 0.0) / noise + 4) / (len(actions) - 1 + 4)
        found[state] = max(ratio**2 / (ratio**2 + 5), share)
    return found


def reach(group: Group, **options: Any) -> dict[Key, float]:
    """Return the advantage of every step."""
    return reach_parts(group, **options)["advantage"]


def reach_parts(
    group: Group, *, doubt: float = 1.0, normalize: str = "std"
) -> dict[str, dict[Key, float]]:
    """Return what the advantage of every step is made of, too.

    Args:
        group: Its trajectories.
        doubt: κ.
        normalize: Whether to scale.
    """
    whole = group
    worth = earned(whole, group)
    steps = {(name, index): step for name, index, step in group.steps()}
    total = [
        math.fsum(worth[name, index] for index in range(len(own)))
        for name, own in group.trajectories.items()
    ]
    mean = mean_of(total)
    variance = mean_of((each - mean) ** 2 for each in total)
    is_new = max(total) == 0

    def state_of(key: Key) -> Any:
        return whole.trajectories[key[0]][key[1]]["state"]

    leaving = by(state_of, [(name, index) for name, index, _ in whole.steps()])
    own_leaving = by(state_of, steps)
    corridors: set[Any] = set()
    for state, keys in leaving.items():
        ends = any(index == len(whole.trajectories[name]) - 1 for name, index in keys)
        led = {whole.target(*key) for key in keys}
        if len(led) == 1 and state not in led and not ends:
            corridors.add(state)
    alone = {state for state in own_leaving if len({name for name, _ in leaving[state]}) == 1}
    before = {(n, i): math.fsum(worth[n, j] for j in range(i)) for n, i in steps}
    after_all = {
        (n, i): math.fsum(worth[n, j] for j in range(i, len(group.trajectories[n])))
        for n, i in steps
    }
    rest = {
        state: mean - mean_of(before[key] for key in own_leaving.get(state, []))
        for state in leaving
    }
    new = novelty(whole) if is_new and not any(map(whole.ok, whole.trajectories)) else {}
    middle = (math.fsum(total) + 0.5) / (len(total) + 1)
    spread = (math.fsum(each**2 for each in total) + 0.5) / (len(total) + 1) - middle**2
    hope = math.sqrt(spread) / 5
    learnt = {
        state: value - variance + hope * new.get(state, 0.0) / (1 + new.get(state, 0.0))
        for state, value in rest.items()
    }
    sure = corridors | (set() if is_new else alone)
    shown = values(whole, worth, sure, rest, doubt)
    value = values(whole, worth, sure, learnt, doubt)

    def after(key: Key, of: dict[Any, float]) -> float:
        is_last = key[1] == len(group.trajectories[key[0]]) - 1
        return worth[key] + (0.0 if is_last else of[steps[key]["next_state"]])

    def of_actions(of: dict[Any, float]) -> dict[Key, float]:
        same = by(lambda key: (state_of(key), steps[key]["action"]), steps)
        return {
            key: mean_of(after(other, of) for other in keys)
            for keys in same.values()
            for key in keys
        }

    q, gain = of_actions(value), {key: after(key, value) - value[state_of(key)] for key in steps}
    share = mean_of(state_of(key) in alone for key in steps) ** 2
    num_alone = sum(state_of(key) in alone for key in steps) / len(group.trajectories)
    beyond = {key: after_all[key] - after(key, value) for key in steps}
    weight = weights(group, beyond, variance, share)
    fade = min(1.0, max(hidden(group, corridors), surprise(group, worth))) ** (1 / 5)
    returns = group.returns().values()
    is_even = max(returns) - min(returns) <= 1e-12 * group.size()
    least, span = (0.0, 1.0) if is_even else (min(returns), max(returns) - min(returns))
    found: dict[str, dict[Key, float]] = {
        "value": {key: least + span * shown[state_of(key)] for key in steps},
        "q": {key: least + span * each for key, each in of_actions(shown).items()},
        "outcome": {},
        "baseline": {},
        "progress": progress(group),
        "advantage": {},
    }
    for key in steps:
        name, index = key
        state, near, counts = state_of(key), 0.0, 1.0
        for later in range(index + 1, len(group.trajectories[name])):
            counts *= 1.0 if state_of((name, later)) in corridors else fade
            near += counts * gain[name, later]
        outcome = (1 - weight[state]) * (q[key] + near) + weight[state] * after_all[key]
        number = len(leaving[state]) + (0.0 if state in sure else doubt)
        baseline = value[state]
        if state in alone and not is_new:
            baseline = mean - before[key] - (1 - share) * variance
        elif state not in corridors and number > 1:
            baseline = (value[state] * number - q[key]) / (number - 1)
        of_many = max(1 / 4, 1 / (1 + (num_alone / 20) ** 2))
        reliability = of_many if state in alone and not is_new else 1.0
        found["outcome"][key] = q[key] if is_new else outcome
        found["baseline"][key] = baseline
        credit = reliability * (found["outcome"][key] - baseline)
        found["advantage"][key] = credit / (math.sqrt(spread) if normalize == "std" else 1.0)
    return found
