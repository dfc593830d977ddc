"""The names of tasks: how many wishes the user has, and the seed from which the rest is drawn.

`w2-s5` has two wishes and seed 5.
"""

import re
from pathlib import Path

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.game_list import entries_of, seeded_tasks
from graphcredit.store.errors import OptionError

ENVIRONMENT = "tools"

_ENTRY = re.compile(r"w(?P<wishes>[12])(?:-s(?P<seed>[0-9]{1,9}))?")


def parse_name(name: str) -> tuple[int, int]:
    """Return the number of wishes and the seed of a full name."""
    wishes, seed = _parse_entry(name)
    if seed is None:
        raise OptionError(f"a task is named w<wishes>-s<seed>, for example w2-s5: got {name!r}")
    return wishes, seed


def list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    """Return tasks by `w1`, `w2`, or single ones such as `w2-s5`."""
    entries = [_parse_entry(entry) for entry in entries_of(games, num_tasks, default="w1,w2")]
    return seeded_tasks(
        ENVIRONMENT,
        entries,
        lambda wishes, its_seed, _: f"w{wishes}-s{its_seed}",
        num_tasks=num_tasks,
        seed=seed,
    )


def _parse_entry(entry: str) -> tuple[int, int | None]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise OptionError(
            "tasks are named w1 or w2, by the wishes of the user, with an optional seed, for "
            f"example w2-s5: got {entry!r}"
        )
    return int(match["wishes"]), int(match["seed"]) if match["seed"] else None
