"""A small world whose states differ in one word: a door, a lamp, coins."""

import random
from typing import Any

from tests.worlds import trajectory

_ROOMS = ("kitchen", "cellar", "garden")


def look(room: int, is_open: bool, coins: int, is_lit: bool) -> str:
    """Return the text of a state."""
    door, lamp = ("open" if is_open else "closed"), ("on" if is_lit else "off")
    return (
        f"You are in the {_ROOMS[room]}.\nThe door is {door}. The lamp is {lamp}.\n{coins} coins."
    )


def lamp_world(
    flicker: float = 0.0, num_tasks: int = 6, length: int = 16
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the steps of groups of eight, and a name of each step's state.

    Args:
        flicker: How often the lamp goes on or off by itself.
        num_tasks: Groups.
        length: Steps of a trajectory.
    """
    rows: list[dict[str, Any]] = []
    for task in range(num_tasks):
        for number in range(8):
            rng = random.Random(f"{task} {number}")
            room, is_open, coins, is_lit = task % 3, False, 0, False
            path = [look(room, is_open, coins, is_lit)]
            for _ in range(length):
                action = rng.choice(("door", "door", "walk", "walk", "walk", "coin", "lamp"))
                is_open ^= action == "door"
                is_lit ^= action == "lamp"
                room = (room + 1) % 3 if action == "walk" and is_open else room
                coins = min(coins + 1, 4) if action == "coin" and room == 1 else coins
                is_lit ^= rng.random() < flicker
                path += [action, look(room, is_open, coins, is_lit)]
            rows += trajectory(f"{task}-{number}", path, task_id=f"t{task}", success=coins > 1)
    return rows, [f"{row['task_id']} {row['state']}" for row in rows]
