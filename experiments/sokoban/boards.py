"""Many boards as arrays: every position that can be reached, its moves, and what a player sees.

The rules and the boards are those of `graphcredit collect --env sokoban`. All boards stand in one
table of positions, so that episodes on many boards are played at once, and the success of a policy
is found without sampling.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.episodes import Bools, Floats, Ints
from graphcredit.collector.environments.sokoban.board import (
    Board,
    Position,
    distances_to_goal,
    moves_from,
)
from graphcredit.collector.environments.sokoban.make_boards import make_board
from graphcredit.collector.environments.sokoban.notation import board_text

ACTIONS: tuple[str, ...] = ("down", "left", "right", "up")


@dataclass(frozen=True, kw_only=True, slots=True)
class Boards:
    """All positions of some boards, in one numbering."""

    names: tuple[str, ...]
    """[num_boards] tasks of the environment `sokoban`."""
    start: Ints
    """[num_boards] first position of each board."""
    board: Ints
    """[num_positions] board of each position."""
    target: Ints
    """[num_positions, 4] where each action leads; to the position itself if it is refused."""
    admissible: Bools
    """[num_positions, 4] whether an action moves the player; nothing does in a won position."""
    is_won: Bools
    """[num_positions]."""
    distance: Floats
    """[num_positions] least number of moves to the goal, infinite at a dead end."""
    text: tuple[str, ...]
    """[num_positions] the board as text."""
    seen: NDArray[np.uint8]
    """[num_positions, num_features] walls, boxes and targets around the player; see `view`."""

    @classmethod
    def of(cls, names: Sequence[str]) -> "Boards":
        """Return the boards of some tasks, such as `6x6b2-s1`."""
        each = [_Part.of(name) for name in names]
        starts = np.cumsum([0, *(len(part.positions) for part in each)])
        shifted = zip(starts, each, strict=False)
        return cls(
            names=tuple(names),
            start=starts[:-1].astype(np.int64),
            board=np.repeat(np.arange(len(each)), np.diff(starts)),
            target=np.concatenate([part.target + first for first, part in shifted]),
            admissible=np.concatenate([part.admissible for part in each]),
            is_won=np.concatenate([part.distance == 0 for part in each]),
            distance=np.concatenate([part.distance for part in each]),
            text=tuple(text for part in each for text in part.texts),
            seen=np.concatenate([part.seen for part in each]),
        )


def view(board: Board, position: Position) -> NDArray[np.uint8]:
    """Return [num_features] what the player sees: three planes, with the player in the middle.

    The planes are walls, boxes and targets; they reach as far as the board does from any of its
    cells, and cells outside the board are wall.
    """
    high, wide = board.rows - 2, board.columns - 2
    planes = np.zeros((3, board.rows + 2 * high, board.columns + 2 * wide), np.uint8)
    planes[0] = 1
    cells = (board.walls, position.boxes, board.targets)
    for plane, found in zip(planes, cells, strict=True):
        inside = [found >> cell & 1 for cell in range(board.rows * board.columns)]
        plane[high:-high, wide:-wide] = np.reshape(inside, (board.rows, board.columns))
    row, column = divmod(position.player, board.columns)
    return planes[:, row + 1 : row + 2 * high, column + 1 : column + 2 * wide].ravel()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """The positions of one board; the first is its start."""

    positions: list[Position]
    target: Ints
    admissible: Bools
    distance: Floats
    texts: list[str]
    seen: NDArray[np.uint8]

    @classmethod
    def of(cls, name: str) -> "_Part":
        board, start = make_board(name)
        distances = distances_to_goal(board)
        positions, moves = [start], list[dict[str, Position]]()
        number = {start: 0}
        for position in positions:  # grows while it is read
            moves.append({} if position.boxes == board.targets else moves_from(board, position))
            for after in moves[-1].values():
                if after not in number:
                    number[after] = len(positions)
                    positions.append(after)
        target = [
            [number[after.get(action, position)] for action in ACTIONS]
            for position, after in zip(positions, moves, strict=True)
        ]
        return cls(
            positions=positions,
            target=np.array(target),
            admissible=np.array([[action in after for action in ACTIONS] for after in moves]),
            distance=np.array([distances.get(position, np.inf) for position in positions]),
            texts=[board_text(board, position) for position in positions],
            seen=np.stack([view(board, position) for position in positions]),
        )


def drawn(
    size: str, number: int, *, first_seed: int, unlike: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of boards of a size that all differ from each other, and from others.

    Args:
        size: Rows, columns and boxes, such as `6x6b2`.
        number: Boards that are wanted.
        first_seed: Seed of the first one; boards that were already drawn are skipped.
        unlike: Names of boards from which they must differ.
    """
    seen = {make_board(name) for name in unlike}
    names: list[str] = []
    for name in _names(size, first_seed):
        if (board := make_board(name)) not in seen:
            seen.add(board)
            names.append(name)
        if len(names) == number:
            break
    return tuple(names)


def _names(size: str, first_seed: int) -> Iterator[str]:
    seed = first_seed
    while True:
        yield f"{size}-s{seed}"
        seed += 1
