"""Slow reach: the recursion written as a recursion, pairs counted as pairs."""

import math
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

from tests.credit.reference import GOAL, Group
from tests.credit.reference_analogy import lists_are_of_states


def _things(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return {(word,) for word in words} | {*pairwise(words)}


def _has_lists(group: Group) -> bool:
    is_whole = all(step.get("admissible_actions") is not None for _, _, step in group.steps())
    return is_whole and lists_are_of_states(group)


def seen(group: Group, state: str) -> float:
    """Return how often the group saw what is rarest in a state."""
    if _has_lists(group):
        taken = Counter(step["action"] for _, _, step in group.steps())
        offered = {
            action
            for _, _, step in group.steps()
            if step["state"] == state
            for action in step["admissible_actions"]
        }
        return min((taken[action] for action in offered), default=math.inf)
    visited = [step["state"] for _, _, step in group.steps()]
    visited += [steps[-1]["next_state"] for steps in group.trajectories.values()]
    return min(
        (sum(thing in _things(text) for text in visited) for thing in _things(state)),
        default=math.inf,
    )


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


def reach(group: Group, *, doubt: float = 0.7, normalize: str = "std") -> dict[Any, float]:
    wins = sum(map(group.ok, group.trajectories))
    chance = (wins + 0.5) / (len(group.trajectories) + 1)
    horizon = max(map(len, group.trajectories.values()))
    lost = {
        steps[-1]["next_state"]
        for name, steps in group.trajectories.items()
        if steps[-1]["terminated"] and not group.ok(name)
    }
    leaving: dict[Any, list[tuple[str, Any]]] = {}
    for name, index, step in group.steps():
        leaving.setdefault(step["state"], []).append((step["action"], group.target(name, index)))

    @cache
    def unknown(state: Any) -> float:
        return 0.0 if wins or state in lost else chance / (1 + seen(group, state))

    @cache
    def value(state: Any, left: int) -> float:
        if state == GOAL:
            return 1.0
        if left == 0:
            return 0.0
        targets = [target for _, target in leaving.get(state, [])]
        reached = math.fsum(value(target, left - 1) for target in targets)
        return (reached + doubt * unknown(state) * left / horizon) / (len(targets) + doubt)

    def of_action(state: Any, action: str, left: int) -> float:
        values = [value(target, left - 1) for a, target in leaving[state] if a == action]
        return math.fsum(values) / len(values)

    decay = hidden(group) ** (1 / 5)
    scale = math.sqrt(chance * (1 - chance) / horizon) if normalize == "std" else 1.0
    found: dict[Any, float] = {}
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
