"""The published ALFWorld games: where they are, their splits, their types, and their names.

A game is a folder `<split>/<task>/<trial>` with the file `game.tw-pddl`, below `json_2.1.1` of the
data that `alfworld-download` fetches. That path is its name; the name of a task begins with its
type, for example `pick_and_place_simple-Book-None-SideTable-329`.
"""

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.game_list import chosen_tasks, entries_of
from graphcredit.store.errors import InputError, OptionError

ENVIRONMENT = "alfworld"
TYPES: tuple[str, ...] = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""Task types of the published splits."""
DEFAULT = "valid_seen"
"""The split that is played if none is named."""

_FOLDER = "json_2.1.1"
_FILE = "game.tw-pddl"
_VARIABLE = "ALFWORLD_DATA"
_LEFT_OUT = ("movable", "Sliced")
"""Words in the names of tasks that the published splits leave out."""
_EXAMPLES = (
    "valid_seen, valid_seen:pick_and_place_simple, or valid_seen/TASK, with or without /TRIAL"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One entry of the list of games."""

    split: str
    type: str | None = None
    """The only type to play, or None for all."""
    path: str | None = None
    """The only task, or task and trial, to play; None for all."""


def list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    """Return tasks by splits, splits and types (`train:TYPE`), tasks (`train/TASK`) or games.

    Of a split, the types come in turn, and each type's games in an order that the seed decides. As
    in ALFWorld, games that are not marked as solvable, and those that move a container or slice
    something, are left out. The data are in `games_dir`, by default in `$ALFWORLD_DATA`.
    """
    root = _data(games_dir)
    entries = [_parse(entry, root) for entry in entries_of(games, num_tasks, default=DEFAULT)]
    sources = [_games_of(entry, root, seed) for entry in entries]
    specs = (spec for turn in zip_longest(*sources) for spec in turn if spec is not None)
    named = [spec for e in entries if e.path is not None for spec in _games_of(e, root, seed)]
    return chosen_tasks(ENVIRONMENT, specs, num_tasks, named=named)


def game_file(spec: str, games_dir: Path) -> Path:
    """Return the file of a game.

    Args:
        spec: Its name, `<split>/<task>/<trial>`.
        games_dir: The data; if the game is not there, `$ALFWORLD_DATA` is searched.

    Raises:
        OptionError: It is in neither.
    """
    given = _below(games_dir) / spec / _FILE
    if given.is_file():
        return given
    # Only now: whoever names a folder need not have the other one.
    file = _data(None) / spec / _FILE
    if file.is_file():
        return file
    raise OptionError(f"a game must be in the data: there is no {file}")


def _data(games_dir: Path | None) -> Path:
    """Return the folder that has the splits."""
    folder = games_dir or Path(os.environ.get(_VARIABLE) or "~/.cache/alfworld").expanduser()
    root = _below(folder)
    if not _splits(root):
        raise OptionError(
            f"ALFWorld's games must be in {folder / _FOLDER}, as alfworld-download puts them: none "
            f"is there. Name their folder in the environment variable {_VARIABLE}"
        )
    return root


def _below(folder: Path) -> Path:
    return folder / _FOLDER if (folder / _FOLDER).is_dir() else folder


def _splits(root: Path) -> list[str]:
    """Return the folders that have games, sorted."""
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if any(path.glob(f"*/*/{_FILE}")))


def _parse(entry: str, root: Path) -> _Entry:
    split, slash, path = entry.partition("/")
    split, colon, kind = split.partition(":")
    parts = Path(path).parts
    if split not in _splits(root) or (slash and not 1 <= len(parts) <= 2) or ".." in parts:
        raise OptionError(
            f"games are named by a split of {root} ({', '.join(_splits(root))}), for example "
            f"{_EXAMPLES}: got {entry!r}"
        )
    if colon and (slash or kind not in TYPES):
        raise OptionError(f"types of tasks are {', '.join(TYPES)}: got {entry!r}")
    found = _Entry(split=split, type=kind or None, path="/".join(parts) or None)
    if next(_games_of(found, root, seed=0), None) is None:
        raise OptionError(
            f"an entry must name at least one game that ALFWorld plays: {entry!r} names none in "
            f"{root}. Unsolvable games, and tasks with {' or '.join(_LEFT_OUT)} in their name, "
            "are left out"
        )
    return found


def _games_of(entry: _Entry, root: Path, seed: int) -> Iterator[str]:
    """Yield the names of an entry's games; each file is read when its turn comes."""
    pattern = f"{entry.path or '*'}/{_FILE}"
    if entry.path is None or "/" not in entry.path:
        pattern = f"{entry.path or '*'}/*/{_FILE}"
    by_type: dict[str, list[str]] = {}
    for file in sorted((root / entry.split).glob(pattern)):
        task = file.parent.parent.name
        kind = task.partition("-")[0]
        if entry.type in (None, kind) and not any(word in task for word in _LEFT_OUT):
            by_type.setdefault(kind, []).append(file.parent.relative_to(root).as_posix())
    for kind, names in by_type.items():
        random.Random(f"{seed}/{entry.split}/{kind}").shuffle(names)
    in_turn = zip_longest(*(_solvable(root, by_type[kind]) for kind in sorted(by_type, key=_place)))
    yield from (spec for turn in in_turn for spec in turn if spec is not None)


def _place(kind: str) -> tuple[int, str]:
    return (TYPES.index(kind) if kind in TYPES else len(TYPES), kind)


def _solvable(root: Path, names: list[str]) -> Iterator[str]:
    return (name for name in names if _is_solvable(root / name / _FILE))


def _is_solvable(file: Path) -> bool:
    """Return whether a game is marked as solvable; one that cannot be read is for play to name."""
    try:
        return bool(read_game(file).get("solvable"))
    except InputError:
        return True


def read_game(file: Path) -> dict[str, Any]:
    """Return the content of a game's file."""
    try:
        game = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"a game must be a JSON file: {file}: {error}") from error
    if not isinstance(game, dict):
        raise InputError(f"a game must be a JSON object: {file} is a {type(game).__name__}")
    return game
