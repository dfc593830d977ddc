"""Draw boards from a seed: each can be won, and none is won by a few moves.

A room with random walls and targets is drawn. The search gives every position from which it can be
won, and the start is one of these at random, so that no board needs to be tried out.
"""

import random
from hashlib import blake2b

from graphcredit.collector.environments.sokoban.board import (
    Board,
    Position,
    cell_set,
    distances_to_goal,
)
from graphcredit.collector.environments.sokoban.names import Size, parse_name

MIN_MOVES = 4
"""Least distance from the start to the goal."""
_WALL_SHARE = 0.15
"""Probability that a cell inside the border is wall."""


def make_board(spec: str) -> tuple[Board, Position]:
    """Return the board and the start of a task; the same everywhere."""
    size, seed = parse_name(spec)
    key = blake2b(f"{size.name}-s{seed}".encode(), digest_size=16).digest()
    rng = random.Random(int.from_bytes(key))
    while True:
        board = _draw_room(size, rng)
        if board is not None and (starts := _starts(board)):
            return board, rng.choice(starts)


def _draw_room(size: Size, rng: random.Random) -> Board | None:
    """Return walls and targets; None if some floor is cut off, or there is too little."""
    rows, columns = range(size.rows), range(size.columns)
    walls = [
        row * size.columns + column
        for row in rows
        for column in columns
        if row in (0, rows[-1]) or column in (0, columns[-1]) or rng.random() < _WALL_SHARE
    ]
    room = Board(rows=size.rows, columns=size.columns, walls=cell_set(walls), targets=0)
    if len(room.floor) <= size.boxes or not _is_connected(room):
        return None
    targets = cell_set(rng.sample(room.floor, size.boxes))
    return Board(rows=size.rows, columns=size.columns, walls=room.walls, targets=targets)


def _is_connected(room: Board) -> bool:
    floor = cell_set(room.floor)
    grown, region = 1 << room.floor[0], 0
    while grown != region:
        region = grown
        for step in (1, room.columns):
            grown |= region << step | region >> step
        grown &= floor
    return region == floor


def _starts(board: Board) -> list[Position]:
    """Return the positions with no box on a target that are far enough from the goal."""
    return [
        position
        for position, distance in distances_to_goal(board).items()
        if distance >= MIN_MOVES and not position.boxes & board.targets
    ]
