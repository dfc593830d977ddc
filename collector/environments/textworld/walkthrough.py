"""Remove the detours from TextWorld's winning plan.

After every action TextWorld has a plan that wins from the player's place: the way back to the
quest, then the quest that it generated. The plan visits the quest's rooms in the quest's order,
even if a loop in the map offers a shorter way. Here every walk in the plan is replaced by a
shortest one.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

_WAYS = {
    "north_of": ("north", "south"),
    "south_of": ("south", "north"),
    "east_of": ("east", "west"),
    "west_of": ("west", "east"),
}
"""For `relation(a, b)`: the direction from b to a, and back; TextWorld keeps one of the facts."""


def without_detours(
    commands: Sequence[str], actions: Sequence[Any], facts: Iterable[Any]
) -> list[str]:
    """Return a plan with each of its walks replaced by a shortest walk between the same rooms.

    Args:
        commands: The plan, as commands of the player.
        actions: The same plan, as TextWorld's actions.
        facts: TextWorld's propositions before the plan.
    """
    world = set(facts)
    plan: list[str] = []
    steps = zip(commands, actions, strict=True)
    for is_walk, run in groupby(steps, key=lambda step: step[1].name.startswith("go/")):
        before, told = world, []
        for command, action in run:
            world = (world - set(action.removed)) | set(action.added)
            told.append(command)
        plan += _shortest_walk(before, _room(before), _room(world)) if is_walk else told
    return plan


def _room(world: Iterable[Any]) -> str:
    return next(fact.names[1] for fact in world if fact.name == "at" and fact.names[0] == "P")


def _shortest_walk(world: Iterable[Any], start: str, goal: str) -> list[str]:
    exits = _exits(world)
    came_from: dict[str, tuple[str, str]] = {}
    queue = deque([start])
    while goal != start and goal not in came_from:
        room = queue.popleft()
        for command, other in exits.get(room, ()):
            if other != start and other not in came_from:
                came_from[other] = (room, command)
                queue.append(other)
    walk: list[str] = []
    while goal != start:
        goal, command = came_from[goal]
        walk.append(command)
    return walk[::-1]


def _exits(world: Iterable[Any]) -> dict[str, list[tuple[str, str]]]:
    """Return, for each room, its usable exits as (command, room that it leads to), sorted."""
    free = {tuple(fact.names) for fact in world if fact.name == "free"}
    exits: dict[str, list[tuple[str, str]]] = {}
    for fact in world:
        if fact.name in _WAYS:
            there, back = _WAYS[fact.name]
            goal, start = fact.names
            for direction, room, other in ((there, start, goal), (back, goal, start)):
                if (room, other) in free and (other, room) in free:
                    exits.setdefault(room, []).append((f"go {direction}", other))
    return {room: sorted(ways) for room, ways in exits.items()}
