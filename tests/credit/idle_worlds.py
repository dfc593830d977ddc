"""Five rooms in a ring, and something beside them that matters, or does not, in one action.

Each world is a function of a random generator, and yields a rollout's states and actions in turn.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.worlds import trajectory

ROOMS = ("hall", "garden", "cellar", "attic", "porch")
_STEPS = 20


@dataclass(slots=True)
class Ring:
    """One rollout in the rooms."""

    rng: random.Random
    actions: tuple[str, ...] = ()
    """Beside `east` and `west`."""
    room: int = 0
    flags: dict[str, Any] = field(default_factory=dict)
    last: str = "look"
    """The action before."""

    def rollout(
        self, says: Callable[["Ring"], list[str]], does: Callable[["Ring", str], None]
    ) -> list[str]:
        """Return states and actions; `does` is asked about each action but the moves."""
        path = [self._text(says)]
        for _ in range(_STEPS):
            action = self.rng.choice(("east", "west", *self.actions))
            if action in ("east", "west"):
                self.room = (self.room + (1 if action == "east" else -1)) % len(ROOMS)
            does(self, action)
            self.last = action
            path += [action, self._text(says)]
        return path

    def _text(self, says: Callable[["Ring"], list[str]]) -> str:
        return "\n".join([f"You are in the {ROOMS[self.room]}.", *says(self)])


World: TypeAlias = Callable[[random.Random], list[str]]


def rows_of(world: World, num_groups: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return the steps of groups of eight rollouts."""
    return [
        row
        for task in range(num_groups)
        for number in range(8)
        for row in trajectory(
            f"{task}-{number}",
            world(random.Random(f"{seed} {task} {number}")),
            task_id=f"t{task}",
        )
    ]


def golem(rng: random.Random) -> list[str]:
    """What the golem is of was dealt; a spell beats it in one room, if it is the right one."""
    kinds = {"fire": "splash", "ice": "melt", "stone": "smash", "wind": "net"}
    kind = rng.choice(list(kinds))

    def says(ring: Ring) -> list[str]:
        if ring.flags.get("beaten"):
            return ["The golem is gone."]
        return [f"A {kind} golem is in the attic."]

    def does(ring: Ring, action: str) -> None:
        if ROOMS[ring.room] == "attic" and action == kinds[kind]:
            ring.flags["beaten"] = True

    return Ring(rng, tuple(kinds.values())).rollout(says, does)


def keeper(rng: random.Random) -> list[str]:
    """A keeper has a mood for the whole rollout; a friendly one can be bargained with."""
    mood = rng.choice(("friendly", "grumpy", "sleepy"))

    def says(ring: Ring) -> list[str]:
        won = "a" if ring.flags.get("won") else "no"
        return [f"The keeper looks {mood}.", f"You have {won} discount."]

    def does(ring: Ring, action: str) -> None:
        if ROOMS[ring.room] == "cellar" and action == "bargain" and mood == "friendly":
            ring.flags["won"] = True

    return Ring(rng, ("bargain", "look")).rollout(says, does)


def _ground(climbs: Callable[[random.Random, str], bool]) -> World:
    def world(rng: random.Random) -> list[str]:
        ring = Ring(rng, ("climb", "look"), flags={"ground": rng.choice(("dry", "wet"))})

        def says(ring: Ring) -> list[str]:
            return [f"The ground is {ring.flags['ground']} today."]

        def does(ring: Ring, action: str) -> None:
            if action == "climb" and climbs(rng, ring.flags["ground"]):
                ring.room = (ring.room + 2) % len(ROOMS)
            if rng.random() < 0.15:
                ring.flags["ground"] = rng.choice(("dry", "wet"))

        return ring.rollout(says, does)

    return world


rain = _ground(lambda rng, ground: ground == "dry")
"""The ground changes by itself, now and then; nobody climbs when it is wet."""
slippery_rain = _ground(lambda rng, ground: rng.random() < (0.9 if ground == "dry" else 0.2))
"""The same with luck."""
drizzle = _ground(lambda rng, ground: True)
"""The same, but the ground does not matter."""
lucky_drizzle = _ground(lambda rng, ground: rng.random() < 0.5)
"""Luck matters, and the ground does not."""


_SKIES = ("Rain drums on the roof.", "A warm light fills everything.", "Outside, fog is rising.")


def _sky(climbs: Callable[[str], bool]) -> World:
    def world(rng: random.Random) -> list[str]:
        ring = Ring(rng, ("climb", "look"), flags={"sky": rng.choice(_SKIES)})

        def does(ring: Ring, action: str) -> None:
            if action == "climb" and climbs(ring.flags["sky"]):
                ring.room = (ring.room + 2) % len(ROOMS)
            if rng.random() < 0.3:
                ring.flags["sky"] = rng.choice(_SKIES)

        return ring.rollout(lambda ring: [ring.flags["sky"]], does)

    return world


sky = _sky(lambda said: True)
"""One of three sentences without a common word, which lasts for some looks."""
storm = _sky(lambda said: "Rain" not in said)
"""The same, but nobody climbs in the rain."""


_SOUNDS = ("Somebody coughs.", "Far away a bell rings.", "It is quiet.")


def sky_and_sound(rng: random.Random) -> list[str]:
    """Two of three sentences each, which last for some looks; nobody climbs at a cough."""
    ring = Ring(rng, ("climb", "look"))
    ring.flags = {"sky": rng.choice(_SKIES), "sound": rng.choice(_SOUNDS)}

    def does(ring: Ring, action: str) -> None:
        if action == "climb" and ring.flags["sound"] != _SOUNDS[0]:
            ring.room = (ring.room + 2) % len(ROOMS)
        for name, sentences in (("sky", _SKIES), ("sound", _SOUNDS)):
            if rng.random() < 0.3:
                ring.flags[name] = rng.choice(sentences)

    return ring.rollout(lambda ring: list(ring.flags.values()), does)


def visitor(rng: random.Random) -> list[str]:
    """A first name that was dealt, in one of three places at each look; nothing depends on it."""
    name = rng.choice(("ada", "bruno", "chen", "dora"))
    forms = ("{} is here.", "You and {} are alone.", "It is quiet, {} thinks.")
    ring = Ring(rng, ("wait", "look"))
    return ring.rollout(lambda ring: [rng.choice(forms).format(name)], lambda ring, action: None)


def lever(rng: random.Random) -> list[str]:
    """An echo that matters: a jump goes far just after the lever was pulled."""

    def does(ring: Ring, action: str) -> None:
        if action == "jump" and ring.last == "pull":
            ring.room = (ring.room + 2) % len(ROOMS)

    return Ring(rng, ("pull", "jump", "wait")).rollout(lambda ring: [f"> {ring.last}"], does)


def terminal(rng: random.Random) -> list[str]:
    """An echo that does not."""
    says: Callable[[Ring], list[str]] = lambda ring: [f"> {ring.last}"]  # noqa: E731
    return Ring(rng, ("wait", "look")).rollout(says, lambda ring, action: None)


def badge(rng: random.Random) -> list[str]:
    """A first name that was dealt, and that nothing depends on."""
    name = rng.choice(("ada", "bruno", "chen"))
    ring = Ring(rng, ("wait", "look"))
    return ring.rollout(lambda ring: [f"Hello {name}!"], lambda ring, action: None)


def price(rng: random.Random) -> list[str]:
    """A number that is drawn at each look, and says where a jump in one room leads to."""
    ring = Ring(rng, ("jump", "look"), flags={"number": 12})

    def says(ring: Ring) -> list[str]:
        return [f"Bus {ring.flags['number']} is next at the cellar."]

    def does(ring: Ring, action: str) -> None:
        if action == "jump" and ROOMS[ring.room] == "cellar":
            ring.room = {12: 3, 47: 4, 83: 0}[ring.flags["number"]]
        ring.flags["number"] = rng.choice((12, 47, 83))

    return ring.rollout(says, does)


def badge_and_gate(rng: random.Random) -> list[str]:
    """Two colours that were dealt; a gate opens where they are the same."""
    badge, gate = (rng.choice(("red", "blue", "white")) for _ in range(2))

    def says(ring: Ring) -> list[str]:
        if ring.flags.get("inside"):
            return ["You are behind the gate."]
        return [f"Your badge is {badge}.", f"The gate has a {gate} lamp."]

    def does(ring: Ring, action: str) -> None:
        if action == "enter" and ROOMS[ring.room] == "garden" and badge == gate:
            ring.flags["inside"] = True

    return Ring(rng, ("enter", "look")).rollout(says, does)


_DESIGNS = ("You are carrying", "Your bag holds", "In hand you have")
_THINGS = ("lamp", "rope", "coin")


def _design(matters: bool) -> World:
    def world(rng: random.Random) -> list[str]:
        words = rng.choice(_DESIGNS)

        def says(ring: Ring) -> list[str]:
            paid = ["The gate is open."] if ring.flags["paid"] else []
            return [f"{words}: a {ring.flags['thing']}.", *paid]

        def does(ring: Ring, action: str) -> None:
            if action == "swap":
                ring.flags["thing"] = _THINGS[(_THINGS.index(ring.flags["thing"]) + 1) % 3]
            if action == "pay" and ring.room == 0 and not (matters and words == _DESIGNS[0]):
                ring.flags["paid"] = True

        return Ring(rng, ("swap", "pay"), flags={"thing": "lamp", "paid": False}).rollout(
            says, does
        )

    return world


design = _design(matters=False)
"""Each rollout's pages have their own words around what is carried."""
broken_design = _design(matters=True)
"""The same, but in one design nobody can pay."""


def doubled(rng: random.Random) -> list[str]:
    """Lines come twice now and then; how many coins there are is said by as many lines."""
    ring = Ring(rng, ("take", "drop", "look"), flags={"coins": 2})
    lines = ("A lamp hangs here.", "The floor is wet. It smells.", "Somebody hums. A door creaks.")

    def says(ring: Ring) -> list[str]:
        shown = [line for line in lines for _ in range(rng.choice((1, 1, 2)))]
        return shown + ["There is a coin."] * ring.flags["coins"]

    def does(ring: Ring, action: str) -> None:
        change = {"take": -1, "drop": 1}.get(action, 0)
        ring.flags["coins"] = min(max(ring.flags["coins"] + change, 0), 3)

    return ring.rollout(says, does)


def _tank(matters: bool) -> World:
    def world(rng: random.Random) -> list[str]:
        ring = Ring(rng, ("drive", "look"), flags={"fuel": rng.randrange(100)})

        def says(ring: Ring) -> list[str]:
            return [f"The tank is {ring.flags['fuel']} % full."]

        def does(ring: Ring, action: str) -> None:
            if action == "drive" and (not matters or ring.flags["fuel"] >= 50):
                ring.room = (ring.room + 2) % len(ROOMS)
            change = rng.choice((-9, -4, -1, 1, 3, 8))
            ring.flags["fuel"] = min(max(ring.flags["fuel"] + change, 0), 99)

        return ring.rollout(says, does)

    return world


fuel = _tank(matters=True)
"""A number that goes up and down by itself; nobody drives with less than a half."""
gauge = _tank(matters=False)
"""The same, but it does not matter."""


def _sea(matters: bool) -> World:
    def world(rng: random.Random) -> list[str]:
        ring = Ring(rng, ("swim", "look"), flags={"time": 0})

        def is_high(ring: Ring) -> bool:
            return ring.flags["time"] % 6 >= 3

        def says(ring: Ring) -> list[str]:
            return ["The tide is high."] if is_high(ring) else []

        def does(ring: Ring, action: str) -> None:
            if action == "swim" and not (matters and is_high(ring)):
                ring.room = (ring.room + 2) % len(ROOMS)
            ring.flags["time"] += 1

        return ring.rollout(says, does)

    return world


tide = _sea(matters=True)
"""A line that all rollouts show at the same times; while it is there, nobody swims."""
swell = _sea(matters=False)
"""The same, but it does not matter."""


def beginning(rng: random.Random) -> list[str]:
    """An echo of the action before, and a line in its place before the first one."""

    def says(ring: Ring) -> list[str]:
        return ["Nothing was done yet." if ring.last == "" else f"You did {ring.last}."]

    ring = Ring(rng, ("wait", "sing"))
    ring.last = ""
    return ring.rollout(says, lambda ring, action: None)
