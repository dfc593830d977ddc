"""The rules of Sokoban, and the distance to the goal from every position that can be won.

The player walks, and pushes one box at a time; nothing can be pulled.

Cells are numbered row by row. A set of cells is an integer whose bit `n` stands for cell `n`, so
that positions are small, are compared quickly, and have the same order on every machine.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_MAX_CACHED = 16
"""Boards whose distances are kept: about 15 MB each at the largest sizes, 50 kB at 6x6b2."""


class Position(NamedTuple):
    """Everything on a board that moves."""

    player: int
    """The player's cell."""
    boxes: int
    """The cells with a box."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """Everything on a board that stays. Its border is wall, so that no move leaves it."""

    rows: int
    """Number of rows, with the border."""
    columns: int
    """Number of columns, with the border."""
    walls: int
    """The cells that are wall."""
    targets: int
    """The cells where the boxes must go."""

    @property
    def offsets(self) -> dict[str, int]:
        """What each action adds to the number of the player's cell, sorted by action."""
        return {"down": self.columns, "left": -1, "right": 1, "up": -self.columns}

    @property
    def floor(self) -> list[int]:
        """The cells that are no wall, in order."""
        return [cell for cell in range(self.rows * self.columns) if not self.walls >> cell & 1]


def cell_set(cells: Iterable[int]) -> int:
    """Return the set of some cells."""
    return sum(1 << cell for cell in set(cells))


def moved(board: Board, position: Position, offset: int) -> Position | None:
    """Return the position after a move; None if a wall or a box that cannot be pushed is there."""
    ahead = position.player + offset
    if board.walls >> ahead & 1:
        return None
    if not position.boxes >> ahead & 1:
        return Position(ahead, position.boxes)
    behind = ahead + offset
    if (board.walls | position.boxes) >> behind & 1:
        return None
    return Position(ahead, position.boxes ^ (1 << ahead | 1 << behind))


def moves_from(board: Board, position: Position) -> dict[str, Position]:
    """Return the position after each action that moves the player, sorted by action."""
    return {
        action: after
        for action, offset in board.offsets.items()
        if (after := moved(board, position, offset)) is not None
    }


def moves_to(board: Board, position: Position) -> Iterator[Position]:
    """Yield every position from which one move leads to this one."""
    player, boxes = position
    for offset in board.offsets.values():
        before = player - offset
        if (board.walls | boxes) >> before & 1:
            continue
        yield Position(before, boxes)
        ahead = player + offset
        if boxes >> ahead & 1:
            yield Position(before, boxes ^ (1 << ahead | 1 << player))


@lru_cache(maxsize=_MAX_CACHED)
def distances_to_goal(board: Board) -> Mapping[Position, int]:
    """Return the least number of moves to the goal by position; dead ends are left out.

    One breadth-first search goes backwards, from every position with all boxes on targets. So it
    finds each position that can be won, and the positions that it does not find cannot be.
    """
    distances = {
        Position(player, board.targets): 0
        for player in board.floor
        if not board.targets >> player & 1
    }
    reached = list(distances)
    for position in reached:
        distance = distances[position] + 1
        for before in moves_to(board, position):
            if before not in distances:
                distances[before] = distance
                reached.append(before)
    return distances


def shortest_plan(
    board: Board, position: Position, distances: Mapping[Position, int]
) -> tuple[str, ...] | None:
    """Return the actions of a shortest way to the goal; None at a dead end."""
    if position not in distances:
        return None
    plan: list[str] = []
    while left := distances[position]:
        action, position = next(
            (action, after)
            for action, after in moves_from(board, position).items()
            if distances.get(after) == left - 1
        )
        plan.append(action)
    return tuple(plan)
