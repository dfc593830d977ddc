"""The Sokoban environment: push every box onto a target, by moving up, down, left and right.

- `state` is the board as text (`board_text`). It is all that there is to see, so `text` is None.
- Admissible actions are those that move the player. All others are refused.
- The reward is 1 for the move that wins, else 0.
- A box in a corner cannot be pulled out, so an episode may be lost long before the step limit ends
  it. The player is not told.
- The oracle's plan is a shortest one, and its length is the exact distance. At a dead end there is
  no plan and no distance.
"""

from pathlib import Path

from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.collector.environments.sokoban.board import (
    Board,
    Position,
    distances_to_goal,
    moves_from,
    shortest_plan,
)
from graphcredit.collector.environments.sokoban.make_boards import make_board

# The notation that Sokoban environments for language models share.
_WALL, _FLOOR, _TARGET = "#", "_", "O"
_BOX, _BOX_ON_TARGET = "X", "√"
_PLAYER, _PLAYER_ON_TARGET = "P", "S"

_TASK = "Push every box onto a target."


class SokobanEnvironment(Environment):
    """One board and its start."""

    def __init__(self, board: Board, start: Position, *, with_oracle: bool) -> None:
        self._board = board
        self._start = start
        self._with_oracle = with_oracle
        self.reset()

    def reset(self) -> Observation:
        """Put the player and the boxes back."""
        self._position = self._start
        return self._observe()

    def step(self, action: str) -> Transition:
        """Move the player, and push a box if one is ahead; what cannot be done is refused."""
        after = self._moves.get(action.strip().lower())
        if after is not None:
            self._position = after
        return Transition(
            observation=self._observe(),
            reward=float(self._is_won),
            is_action_valid=after is not None,
            terminated=self._is_won,
            success=self._is_won,
        )

    @property
    def _is_won(self) -> bool:
        return self._position.boxes == self._board.targets

    def _observe(self) -> Observation:
        self._moves = {} if self._is_won else moves_from(self._board, self._position)
        return Observation(
            state=board_text(self._board, self._position),
            admissible_actions=tuple(self._moves),
            oracle_actions=self._plan(),
            task=_TASK,
        )

    def _plan(self) -> tuple[str, ...] | None:
        if not self._with_oracle:
            return None
        return shortest_plan(self._board, self._position, distances_to_goal(self._board))


def open_sokoban(spec: str, _: Path, with_oracle: bool) -> SokobanEnvironment:
    """Open the board of a task."""
    board, start = make_board(spec)
    return SokobanEnvironment(board, start, with_oracle=with_oracle)


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
