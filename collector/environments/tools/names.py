"""The names of tasks: how many wishes the user has, and the seed from which the rest is drawn.

`w2-s5` has two wishes and seed 5.
"""

import re
from pathlib import Path

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.game_list import chosen_tasks, entries_of, in_turn
from graphcredit.store.errors import OptionError

ENVIRONMENT = "tools"

_ENTRY = re.compile(r"w(?P<wishes>[12])(?:-s(?P<seed>[0-9]{1,9}))?")


def parse_name(name: str) -> tuple[int, int]:
    """Return the number of wishes and the seed of a full name.

    Raises:
        OptionError: The name is not `w<wishes>-s<seed>`.
    """
    wishes, seed = _parse_entry(name)
    if seed is None:
        raise OptionError(f"a task is named w<wishes>-s<seed>, for example w2-s5: got {name!r}")
    return wishes, seed


def list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    """Return tasks, taking the entries of a list in turn.

    Args:
        games: Entries separated by commas: `w1`, `w2`, or one task such as `w2-s5`; the first two
            by default.
        num_tasks: Number of tasks; fewer are returned if all entries name one task each.
        seed: Seed of the first round; each further round has the next seed.
        games_dir: Not used: these are generated.

    Raises:
        OptionError: An entry is not a task, or the list names more tasks than are asked for.
    """
    del games_dir
    entries = [_parse_entry(entry) for entry in entries_of(games, num_tasks, default="w1,w2")]

    def name(wishes: int, own_seed: int | None, turn: int) -> str:
        return f"w{wishes}-s{seed + turn if own_seed is None else own_seed}"

    named = [name(wishes, own_seed, 0) for wishes, own_seed in entries if own_seed is not None]
    return chosen_tasks(ENVIRONMENT, in_turn(entries, name), num_tasks, named=named)


def _parse_entry(entry: str) -> tuple[int, int | None]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise OptionError(
            "tasks are named w1 or w2, by the wishes of the user, with an optional seed, for "
            f"example w2-s5: got {entry!r}"
        )
    return int(match["wishes"]), int(match["seed"]) if match["seed"] else None
