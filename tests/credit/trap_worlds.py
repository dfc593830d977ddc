"""Four worlds in which what looks like noise matters.

What is dealt for a task is the same in all its rollouts. The policy is uniform over the actions
that are possible. The reward is 1 for the winning action, else 0.
"""

import random
from collections.abc import Callable
from typing import Any

STEPS = 12

Look = tuple[str, str, list[str]]
"""A visit: its text, its true state, and the actions that are possible."""
Effect = tuple[Look, float, bool]
"""What an action does: the next visit, the reward, and whether the trajectory ends."""
World = tuple[Look, Callable[[str], Effect]]
"""A rollout: its first visit, and the function that takes an action."""


def _play(
    name: str,
    seed: int,
    num_groups: int,
    group_size: int,
    begin: Callable[[random.Random, random.Random], World],
) -> list[dict[str, Any]]:
    """Return the steps of a random policy, given what begins a rollout of a task."""
    rows: list[dict[str, Any]] = []
    for group in range(num_groups):
        for member in range(group_size):
            task = f"{name}-{group}"
            rng = random.Random(f"{seed} {task} {member}")
            (text, true, actions), act = begin(random.Random(f"{seed} {task}"), rng)
            played: list[dict[str, Any]] = []
            for index in range(STEPS):
                action = rng.choice(actions)
                (after, true_after, actions), reward, ended = act(action)
                played.append(
                    {
                        "trajectory_id": f"{task}-{member}",
                        "task_id": task,
                        "step_index": index,
                        "state": text,
                        "action": action,
                        "next_state": after,
                        "reward": reward,
                        "true_state": true,
                    }
                )
                text, true = after, true_after
                if ended:
                    break
            success = played[-1]["reward"] > 0
            played[-1] |= {"success": success, "terminated": success, "truncated": not success}
            rows.extend(played)
    return rows


def boiler_sound(seed: int, num_groups: int, group_size: int) -> list[dict[str, Any]]:
    """Play the house where one word of the ambience says whether the door may be opened."""
    exits = {"hall": ("boiler room", "porch"), "boiler room": ("hall",), "porch": ("hall",)}
    wordings = (
        "You are in the {}. The pipes {} overhead.",
        "This is the {}. Above you the pipes {}.",
        "You look around the {}. Somewhere above, pipes {}.",
    )

    def begin(task: random.Random, rng: random.Random) -> World:
        safe = task.choice(("hum", "hiss"))
        now = {"place": "hall", "sound": rng.choice(("hum", "hiss"))}

        def look() -> Look:
            place, sound = now["place"], now["sound"]
            actions = [f"go to the {other}" for other in exits[place]]
            actions += {"boiler room": ["turn the wheel"], "porch": ["open the door"]}.get(
                place, []
            )
            return rng.choice(wordings).format(place, sound), f"{place}/{sound}", actions

        def act(action: str) -> Effect:
            if action == "open the door":
                won = now["sound"] == safe
                end = "The door opens. You are out." if won else "Steam drives you off. It is over."
                return (end, "won" if won else "lost", []), float(won), True
            if action == "turn the wheel":
                now["sound"] = "hiss" if now["sound"] == "hum" else "hum"
            else:
                now["place"] = action.removeprefix("go to the ")
            return look(), 0.0, False

        return look(), act

    return _play("boiler_sound", seed, num_groups, group_size, begin)


def museum_guide(seed: int, num_groups: int, group_size: int) -> list[dict[str, Any]]:
    """Play the museum where the dealt guide decides which door wins, but the visitor's name not."""
    rooms = ("foyer", "gallery", "vault")
    guides, visitors = ("Ada", "Bo", "Cy"), ("Priya", "Tom", "Ines")

    def begin(task: random.Random, rng: random.Random) -> World:
        odd, usual = task.choice(guides), task.choice(("left", "right"))
        other = "right" if usual == "left" else "left"
        guide, visitor = rng.choice(guides), rng.choice(visitors)
        good, at = (other if guide == odd else usual), [0]

        def look() -> Look:
            text = (
                f"Welcome {visitor}! {guide} is your guide today.\nYou are in the {rooms[at[0]]}."
            )
            moves = ["go on"] if at[0] < 2 else ["take the left door", "take the right door"]
            moves += ["go back"] if at[0] else []
            return text, f"{rooms[at[0]]}/{good}", moves

        def act(action: str) -> Effect:
            if action.startswith("take"):
                won = good in action
                end = "You found the exhibit." if won else "A dead end. The museum closes."
                return (end, "won" if won else "lost", []), float(won), True
            at[0] += 1 if action == "go on" else -1
            return look(), 0.0, False

        return look(), act

    return _play("museum_guide", seed, num_groups, group_size, begin)


def slow_page(seed: int, num_groups: int, group_size: int) -> list[dict[str, Any]]:
    """Play the checkout where a latency, fresh at each look, decides what a click does."""
    pages = ("cart", "address", "payment")

    def begin(task: random.Random, rng: random.Random) -> World:
        now = {"page": 0, "slow": False}

        def look() -> Look:
            now["slow"] = rng.random() < 0.4
            latency = rng.randint(500, 2000) if now["slow"] else rng.randint(20, 499)
            page = pages[now["page"]]
            text = (
                f"Checkout: {page}\nRequest {rng.getrandbits(32):08x} · server latency "
                f"{latency} ms · rendered in {rng.randint(20, 2000)} ms"
            )
            moves = ["continue", "reload"] + (["go back"] if now["page"] else [])
            return text, f"{page}/{'slow' if now['slow'] else 'fast'}", moves

        def act(action: str) -> Effect:
            if action == "continue" and now["page"] == 2:
                won = not now["slow"]
                end = "Order placed." if won else "Charged twice. The order was cancelled."
                return (end, "won" if won else "lost", []), float(won), True
            if action == "continue" and not now["slow"]:
                now["page"] += 1
            elif action == "go back":
                now["page"] -= 1
            return look(), 0.0, False

        return look(), act

    return _play("slow_page", seed, num_groups, group_size, begin)


def lock_panel(seed: int, num_groups: int, group_size: int) -> list[dict[str, Any]]:
    """Play the lock whose progress shows only in the echo of the last two presses."""
    colours = ("red", "blue", "green")

    def begin(task: random.Random, rng: random.Random) -> World:
        code = task.sample(colours, 3)
        pressed: list[str] = []

        def look() -> Look:
            echo = ", ".join(pressed[-2:]) or "nothing"
            progress = 2 if pressed[-2:] == code[:2] else int(pressed[-1:] == code[:1])
            text = (
                f"[{rng.randint(0, 23):02}:{rng.randint(0, 59):02}] last input: {echo}\n"
                "A panel with a red, a blue and a green button. The box is shut."
            )
            return text, f"progress {progress}", [f"press {colour}" for colour in colours]

        def act(action: str) -> Effect:
            pressed.append(action.removeprefix("press "))
            if pressed[-3:] == code:
                return ("The box springs open.", "won", []), 1.0, True
            return look(), 0.0, False

        return look(), act

    return _play("lock_panel", seed, num_groups, group_size, begin)
