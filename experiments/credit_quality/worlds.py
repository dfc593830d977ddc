"""The games of the experiment, and how they are played.

Nothing was designed on these games: TextWorld's are of each kind that it makes, ALFWorld's are
published, and the questions of `search` have the entities that SAPO needs.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from graphcredit.collector.collection import collect
from graphcredit.collector.environments.registry import environment_kind
from graphcredit.collector.options import CollectOptions
from graphcredit.store import Store

GROUP_SIZE = 8
ITERATION = 4
"""Iteration of all rollouts; it seeds them, and those of the kept results had it."""

_SIZES: Mapping[str, tuple[str, ...]] = {
    "custom": ("r8o8q6", "r6o6q4", "r5o5q6", "r6o8q5"),
    "treasure": ("l12", "l15"),
    "coin": ("l105", "l205"),
    "cooking": ("r1t1g6", "r1t1g6k1"),
}
"""Sizes of TextWorld's games, used in turn."""
_LARGER: Mapping[str, tuple[str, ...]] = {
    "custom": ("r10o10q8",),
    "treasure": ("l18",),
    "coin": ("l207",),
    "cooking": ("r2t2g6",),
}


def _named(sizes: Mapping[str, tuple[str, ...]], first_seed: int, number: int) -> tuple[str, ...]:
    """Return full names of `number` games of each kind, in turn, each with its own seed."""
    return tuple(
        f"{kind}-{of_kind[i % len(of_kind)]}-s{first_seed + i}"
        for i in range(number)
        for kind, of_kind in sizes.items()
    )


TEXT_GAMES: tuple[str, ...] = (*_named(_SIZES, 10_000, 30), *_named(_LARGER, 11_000, 10))
QUESTIONS: tuple[str, ...] = tuple(f"{hops}hop-s{200 + i}" for hops in (2, 3) for i in range(15))


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """An environment, and how it is played."""

    games: tuple[str, ...]
    """Full names, or families, of games."""
    num_tasks: int
    epsilon: float
    """Share of random actions of the policy `oracle:EPSILON`."""
    max_steps: int


WORLDS: Mapping[str, World] = MappingProxyType(
    {
        "textworld": World(games=TEXT_GAMES, num_tasks=160, epsilon=0.85, max_steps=25),
        "alfworld": World(games=("valid_seen",), num_tasks=60, epsilon=0.7, max_steps=50),
        "sokoban": World(games=("6x6b1", "7x7b2"), num_tasks=60, epsilon=0.7, max_steps=40),
        "search": World(games=QUESTIONS, num_tasks=30, epsilon=0.5, max_steps=25),
    }
)
"""Environment to how it is played: with 85 % random actions, the others win too rarely to compare
anything."""


def playable(worlds: Iterable[str]) -> list[str]:
    """Return the worlds whose games are there: those of ALFWorld are in `$ALFWORLD_DATA`."""
    return [name for name in worlds if name != "alfworld" or os.environ.get("ALFWORLD_DATA")]


def play(
    log: Store,
    name: str,
    *,
    num_tasks: int | None = None,
    num_workers: int = 0,
    games_dir: Path | None = None,
) -> list[str]:
    """Play the missing rollouts of a world; return its games.

    Args:
        log: Store of the rollouts; each world is a run.
        name: One of `WORLDS`.
        num_tasks: Most games; by default those of the world.
        num_workers: Processes that play.
        games_dir: Directory of generated games; the user's cache by default.

    Raises:
        SystemExit: Some rollouts failed.
    """
    world = WORLDS[name]
    number = min(num_tasks or world.num_tasks, world.num_tasks)
    # A list of full names must not be longer than the number of tasks.
    games = world.games[:number] if len(world.games) == world.num_tasks else world.games
    tasks = environment_kind(name).list_tasks(",".join(games), num_tasks=number, seed=0)
    done = collect(
        log,
        tasks,
        CollectOptions(
            policy=f"oracle:{world.epsilon}",
            group_size=GROUP_SIZE,
            max_steps=world.max_steps,
            seed=0,
            workers=num_workers,
            run=f"{name}-oracle-{world.epsilon:g}",
            iteration=ITERATION,
            oracle=True,
            games_dir=games_dir,
        ),
    )
    if done.failures:
        raise SystemExit("\n".join(done.failures))
    print(f"{name}: {done.num_trajectories} trajectories in {done.seconds:.0f} s", flush=True)
    return [task.spec for task in tasks]
