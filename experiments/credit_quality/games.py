"""Games of the experiment: a development set for design and tuning, and a held-out set.

The held-out set is evaluated once. Both sets have every kind of game that TextWorld makes, in equal
numbers. They share no seed. The held-out set has one size of each kind that the development set
lacks.

Both sets also have questions of the environment `search`, because SAPO needs entities and the games
have none.
"""

from collections.abc import Mapping
from types import MappingProxyType

KINDS: tuple[str, ...] = ("custom", "treasure", "coin", "cooking")
"""Families of `graphcredit collect --games`."""

SIZES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "custom": ("r8o8q6", "r6o6q4", "r5o5q6", "r6o8q5"),
        "treasure": ("l12", "l15"),
        "coin": ("l105", "l205"),
        "cooking": ("r1t1g6", "r1t1g6k1"),
    }
)
"""Sizes of the games of each kind, used in turn."""

NEW_SIZES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "custom": ("r10o10q8",),
        "treasure": ("l18",),
        "coin": ("l207",),
        "cooking": ("r2t2g6",),
    }
)
"""Sizes of games that only the held-out set has."""

FIRST_HELD_OUT_SEED = 10_000
"""First seed of the held-out set; lower seeds are for development."""


def _games(sizes: Mapping[str, tuple[str, ...]], first_seed: int, number: int) -> tuple[str, ...]:
    """Return full names of `number` games of each kind, each with its own seed."""
    return tuple(
        f"{kind}-{sizes[kind][i % len(sizes[kind])]}-s{first_seed + i}"
        for kind in KINDS
        for i in range(number)
    )


DEVELOPMENT: tuple[str, ...] = _games(SIZES, 1_000, 30)
HELD_OUT: tuple[str, ...] = (
    *_games(SIZES, FIRST_HELD_OUT_SEED, 30),
    *_games(NEW_SIZES, FIRST_HELD_OUT_SEED + 1_000, 10),
)


def _questions(first: int, number: int) -> tuple[str, ...]:
    return tuple(f"{kind}-s{first + i}" for kind in ("2hop", "3hop") for i in range(number))


GAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "development": {"textworld": DEVELOPMENT, "search": _questions(0, 15)},
        "held-out": {"textworld": HELD_OUT, "search": _questions(200, 15)},
    }
)
"""Games by the value of `--games`, then by environment."""


def kind_of(game: str) -> str:
    """Return the kind of a game, or of a question."""
    return game.partition("-")[0]


def by_kind(games: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the games of each kind, in order."""
    kinds = dict.fromkeys(map(kind_of, games))
    return {kind: tuple(game for game in games if kind_of(game) == kind) for kind in kinds}


def few(games: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Return the first `number` games of each kind."""
    return tuple(game for same in by_kind(games).values() for game in same[:number])
