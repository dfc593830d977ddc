"""The names of boards: rows, columns and boxes, and the seed from which the board is drawn.

`6x6b2-s1` has 6 rows and 6 columns, the border of walls included, 2 boxes, and seed 1.
"""

import re
from dataclasses import dataclass
from math import comb
from pathlib import Path

from graphcredit.collector.environments.base import Task
from graphcredit.collector.environments.game_list import check_seed, entries_of, seeded_tasks
from graphcredit.store.errors import OptionError

ENVIRONMENT = "sokoban"
SIDES = range(5, 13)
"""Possible numbers of rows and columns: with fewer, most boxes could not be pushed."""
MAX_POSITIONS = 1_000_000
"""Most positions that a board may have: the search for distances visits a good part of them."""

_ENTRY = re.compile(
    r"(?P<rows>[0-9]{1,3})x(?P<columns>[0-9]{1,3})b(?P<boxes>[0-9]{1,3})(?:-s(?P<seed>[0-9]{1,10}))?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The size of a board."""

    rows: int
    columns: int
    boxes: int

    @property
    def name(self) -> str:
        """Its name, without a seed."""
        return f"{self.rows}x{self.columns}b{self.boxes}"

    @property
    def num_inside(self) -> int:
        """Number of cells inside the border."""
        return (self.rows - 2) * (self.columns - 2)

    @property
    def num_positions(self) -> int:
        """Number of ways to place the boxes and the player where no wall is inside."""
        return comb(self.num_inside, self.boxes) * (self.num_inside - self.boxes)


def parse_name(name: str) -> tuple[Size, int]:
    """Return the size and the seed of a full name."""
    size, seed = _parse_entry(name)
    if seed is None:
        raise OptionError(
            f"a board is named <rows>x<columns>b<boxes>-s<seed>, for example 6x6b2-s1: got {name!r}"
        )
    return size, seed


def list_tasks(
    games: str | None, *, num_tasks: int, seed: int, games_dir: Path | None = None
) -> list[Task]:
    """Return tasks by sizes such as `6x6b2`, or single boards such as `6x6b2-s1`."""
    entries = [_parse_entry(entry) for entry in entries_of(games, num_tasks, default="6x6b1,6x6b2")]
    return seeded_tasks(
        ENVIRONMENT,
        entries,
        lambda size, its_seed, _: f"{size.name}-s{its_seed}",
        num_tasks=num_tasks,
        seed=check_seed(seed),
    )


def _parse_entry(entry: str) -> tuple[Size, int | None]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise OptionError(
            "boards are named <rows>x<columns>b<boxes>, with an optional seed, for example 6x6b2 "
            f"or 6x6b2-s1: got {entry!r}"
        )
    rows, columns, boxes = (int(number) for number in match.group("rows", "columns", "boxes"))
    size = Size(rows=rows, columns=columns, boxes=boxes)
    _check_size(size)
    seed = match["seed"]
    return size, None if seed is None else check_seed(int(seed))


def _check_size(size: Size) -> None:
    if size.rows not in SIDES or size.columns not in SIDES:
        raise OptionError(
            f"a board must have {SIDES[0]} to {SIDES[-1]} rows and columns, with the border of "
            f"walls: got {size.name}"
        )
    most = size.num_inside // 4
    if not 1 <= size.boxes <= most:
        raise OptionError(
            f"a board of {size.rows}x{size.columns} must have 1 to {most} boxes, one for four "
            f"cells inside the border: got {size.name}"
        )
    if size.num_positions > MAX_POSITIONS:
        raise OptionError(
            f"a board must have at most {MAX_POSITIONS:,} positions, since all are searched: "
            f"{size.name} has {size.num_positions:,}. Name fewer boxes, or a smaller board"
        )
