"""The available TextWorld games: four families, their settings, and the names of games.

A game is named `<family>-<settings>-s<seed>`, for example `custom-r8o8q6-s1`: 8 rooms, 8 objects, a
quest of 6 actions, seed 1. A setting is a letter and a number. Settings may be given in any order,
and with defaults spelled out; the game's name is the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.game_list import check_seed, entries_of, seeded_tasks
from graphcredit.store.errors import OptionError

ENVIRONMENT = "textworld"


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One number in the name of a game."""

    meaning: str
    values: range | tuple[int, ...]
    """The possible numbers."""
    default: int | None = None
    """The number if the name leaves the setting out; None if it is required."""
    tells: bool = False
    """Whether it changes only the text that the player sees, and not the game."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One kind of game."""

    settings: dict[str, Setting]
    """Settings by their letter in the name."""
    presets: tuple[str, ...]
    """Settings at which a noisy policy wins sometimes; used in turn if only the family is named."""


_SWITCH = (0, 1)

_LOOKLESS = Setting(
    meaning="whether actions that only look are left out", values=_SWITCH, default=0, tells=True
)

FAMILIES: dict[str, Family] = {
    "custom": Family(
        settings={
            "r": Setting(meaning="rooms", values=range(1, 51)),
            "o": Setting(meaning="objects, at least", values=range(1, 101)),
            "q": Setting(meaning="actions of the quest", values=range(1, 51)),
            "b": Setting(
                meaning="whether the task is told briefly, by its last action",
                values=_SWITCH,
                default=0,
                tells=True,
            ),
            "n": _LOOKLESS,
        },
        presets=("r8o8q6", "r6o6q4", "r5o5q6", "r6o8q5"),
    ),
    "coin": Family(
        settings={
            "l": Setting(meaning="level; dead ends above 100", values=range(1, 301)),
            "n": _LOOKLESS,
        },
        presets=("l205", "l105"),
    ),
    "treasure": Family(
        settings={
            "l": Setting(meaning="level; loops above 10", values=range(1, 31)),
            "n": _LOOKLESS,
        },
        presets=("l15", "l12"),
    ),
    "cooking": Family(
        settings={
            "r": Setting(meaning="ingredients of the recipe", values=range(1, 6)),
            "t": Setting(meaning="ingredients to fetch", values=range(1, 6)),
            "g": Setting(meaning="rooms", values=(1, 6, 9, 12)),
            "o": Setting(meaning="whether doors are closed", values=_SWITCH, default=0),
            "k": Setting(meaning="whether to cook", values=_SWITCH, default=0),
            "c": Setting(meaning="whether to cut", values=_SWITCH, default=0),
            "d": Setting(meaning="whether hands can be full", values=_SWITCH, default=0),
            "n": _LOOKLESS,
        },
        presets=("r1t1g6", "r1t1g6k1"),
    ),
}
"""`treasure` is lost by taking the wrong object, `cooking` by spoiling an ingredient."""

_SETTINGS = r"(?:[a-z][0-9]+)+"
_ENTRY = re.compile(rf"(?P<family>[a-z]+)(?:-(?P<settings>{_SETTINGS})(?:-s(?P<seed>[0-9]+))?)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Game:
    """One game: everything that determines it."""

    family: str
    """A key of `FAMILIES`."""
    settings: str
    """Letters and numbers, for example `r8o8q6`, in the order of `FAMILIES`, without defaults."""
    seed: int

    @property
    def name(self) -> str:
        """The spec of its task, and its file name in the cache."""
        return f"{self.family}-{self.settings}-s{self.seed}"

    @property
    def numbers(self) -> dict[str, int]:
        """Every setting of the family, by letter."""
        named = {letter: int(number) for letter, number in _pairs(self.settings)}
        defaults = FAMILIES[self.family].settings
        return {letter: named.get(letter, s.default or 0) for letter, s in defaults.items()}


def parse_game(name: str) -> Game:
    """Return the game of a full name; its settings may be in any order."""
    (family, settings), seed = _parse_entry(name)
    if settings is None or seed is None:
        raise OptionError(
            "a game is named <family>-<settings>-s<seed>, for example custom-r8o8q6-s1: "
            f"got {name!r}"
        )
    return Game(family=family, settings=settings, seed=seed)


def world_of(spec: str) -> str:
    """Return the name of a task's game without the settings that change only the text."""
    game = parse_game(spec)
    settings = FAMILIES[game.family].settings
    kept = {letter: n for letter, n in game.numbers.items() if not settings[letter].tells}
    return replace(game, settings=_written(game.family, kept)).name


def list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    """Return tasks by families, families with settings, or single games with their seed.

    The presets of a family that is named alone are used in turn.
    """

    def name(entry: tuple[str, str | None], its_seed: int, turn: int) -> str:
        family, settings = entry
        presets = FAMILIES[family].presets
        settings = settings or presets[turn % len(presets)]
        return Game(family=family, settings=settings, seed=its_seed).name

    listed = entries_of(games, num_tasks, default=",".join(FAMILIES))
    entries = [_parse_entry(entry) for entry in listed]
    return seeded_tasks(ENVIRONMENT, entries, name, num_tasks=num_tasks, seed=check_seed(seed))


def _parse_entry(entry: str) -> tuple[tuple[str, str | None], int | None]:
    match = _ENTRY.fullmatch(entry)
    if match is None or match["family"] not in FAMILIES:
        raise OptionError(
            f"games are named by a family ({', '.join(FAMILIES)}), with optional settings and "
            f"seed, for example coin or coin-l205 or coin-l205-s1: got {entry!r}"
        )
    family, settings, seed = match.group("family", "settings", "seed")
    if settings is not None:
        settings = _written(family, _read_settings(family, settings))
    return (family, settings), None if seed is None else check_seed(int(seed))


def _read_settings(family: str, settings: str) -> dict[str, int]:
    known = FAMILIES[family].settings
    pairs = _pairs(settings)
    found = {letter: int(number) for letter, number in pairs}
    missing = [letter for letter, s in known.items() if s.default is None and letter not in found]
    wrong = [x for x in found if x not in known or found[x] not in known[x].values]
    if missing or wrong or len(found) < len(pairs):
        raise OptionError(
            f"the settings of a {family} game are {_describe(known)}, each at most once: "
            f"got {settings!r}"
        )
    return found


def _written(family: str, numbers: Mapping[str, int]) -> str:
    """Return settings in the form of a name: in the family's order, without defaults."""
    return "".join(
        f"{letter}{numbers[letter]}"
        for letter, setting in FAMILIES[family].settings.items()
        if letter in numbers and numbers[letter] != setting.default
    )


def _describe(settings: dict[str, Setting]) -> str:
    return ", ".join(
        f"{letter}{_span(s.values)}{'' if s.default is None else ' (optional)'} {s.meaning}"
        for letter, s in settings.items()
    )


def _span(values: range | tuple[int, ...]) -> str:
    if isinstance(values, range):
        return f"{values[0]}…{values[-1]}"
    return "|".join(map(str, values))


def _pairs(settings: str) -> list[tuple[str, str]]:
    return re.findall(r"([a-z])([0-9]+)", settings)
