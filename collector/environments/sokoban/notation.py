"""Boards as text, in the notation that Sokoban environments for language models share.

`#` wall, `_` floor, `O` target, `X` box, `√` box on a target, `P` player, `S` player on a target.
"""

from graphcredit.collector.environments.sokoban.board import Board, Position

_WALL, _FLOOR, _TARGET = "#", "_", "O"
_BOX, _BOX_ON_TARGET = "X", "√"
_PLAYER, _PLAYER_ON_TARGET = "P", "S"


def board_text(board: Board, position: Position) -> str:
    """Return a board with its boxes and its player, one line for each row."""
    symbols = [_symbol(board, position, cell) for cell in range(board.rows * board.columns)]
    rows = range(0, len(symbols), board.columns)
    return "\n".join(" ".join(symbols[first : first + board.columns]) for first in rows)


def _symbol(board: Board, position: Position, cell: int) -> str:
    is_target = board.targets >> cell & 1
    if board.walls >> cell & 1:
        return _WALL
    if position.boxes >> cell & 1:
        return _BOX_ON_TARGET if is_target else _BOX
    if position.player == cell:
        return _PLAYER_ON_TARGET if is_target else _PLAYER
    return _TARGET if is_target else _FLOOR
