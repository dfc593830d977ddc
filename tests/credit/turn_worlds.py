"""Worlds that are trees of decisions, and the exact expectation of what credit makes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tests.worlds import trajectory


@dataclass(frozen=True, kw_only=True)
class Option:
    """What an action gives, and what follows; nothing follows an end."""

    chance: float
    reward: float
    then: "Sequence[Option]" = ()


World = Sequence[Option]
"""What may be done at first."""

Place = tuple[int, ...]
"""The actions before a decision."""


@dataclass(frozen=True, kw_only=True)
class Path:
    """A whole trajectory."""

    actions: Place
    rewards: tuple[float, ...]
    chance: float


def paths(world: World) -> Iterator[Path]:
    """Yield every trajectory."""
    for action, option in enumerate(world):
        following = list(paths(option.then)) or [Path(actions=(), rewards=(), chance=1.0)]
        for path in following:
            yield Path(
                actions=(action, *path.actions),
                rewards=(option.reward, *path.rewards),
                chance=option.chance * path.chance,
            )


def decisions(world: World, before: Place = (), reached: float = 1.0) -> Iterator[Any]:
    """Yield each place where something is done, the chance to get there, and the options."""
    yield before, reached, world
    for action, option in enumerate(world):
        if option.then:
            yield from decisions(option.then, (*before, action), reached * option.chance)


def value(world: World) -> float:
    """Return the expected return from a decision on."""
    return sum(o.chance * (o.reward + value(o.then)) for o in world)


def true_gradient(world: World) -> dict[tuple[Place, int], float]:
    """Return the derivative of the expected return by each logit of the policy."""
    return {
        (place, action): reached * o.chance * (o.reward + value(o.then) - value(options))
        for place, reached, options in decisions(world)
        for action, o in enumerate(options)
    }


@dataclass(frozen=True, kw_only=True)
class Groups:
    """All groups of some size that may be played, each as a task."""

    played: list[tuple[Path, ...]]
    rows: list[dict[str, Any]]


def all_groups(world: World, size: int) -> Groups:
    """Return every group; they are as many as trajectories to the power of the size."""
    played = list(product(paths(world), repeat=size))
    rows: list[dict[str, Any]] = []
    for number, group in enumerate(played):
        for place, path in enumerate(group):
            states = [str(path.actions[:t]) for t in range(len(path.actions) + 1)]
            words = [word for state in states for word in (state, "act")][:-1]
            rows += trajectory(
                f"{number}-{place}", words, rewards=list(path.rewards), task_id=f"g{number}"
            )
    return Groups(played=played, rows=rows)


def expected_gradient(
    world: World, groups: Groups, credit: dict[tuple[str, str, int], float]
) -> dict[tuple[Place, int], float]:
    """Return the expectation of what a policy gradient with this credit adds to each logit.

    Args:
        world: The world.
        groups: All groups that may be played in it.
        credit: Advantage of each (task, trajectory, step).
    """
    chance = {
        (place, action): o.chance
        for place, _, options in decisions(world)
        for action, o in enumerate(options)
    }
    gradient = dict.fromkeys(chance, 0.0)
    for number, group in enumerate(groups.played):
        likely = float(np.prod([path.chance for path in group]))
        for place, path in enumerate(group):
            for t, taken in enumerate(path.actions):
                here = path.actions[:t]
                advantage = likely * credit[f"g{number}", f"{number}-{place}", t]
                for action in range(sum(where == here for where, _ in chance)):
                    is_taken = float(action == taken)
                    gradient[here, action] += advantage * (is_taken - chance[here, action])
    return gradient
