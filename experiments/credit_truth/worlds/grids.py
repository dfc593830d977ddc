"""Worlds on a grid: boxes to push, a windy cliff, a maze seen locally, a key and a door."""

from collections.abc import Mapping

from experiments.credit_truth.world import World, enumerate_world

Cell = tuple[int, int]

_MOVES: Mapping[str, Cell] = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}


def _cells(board: str) -> dict[Cell, str]:
    """Return the character of each cell of a board; `|` ends a row."""
    return {
        (row, column): mark
        for row, line in enumerate(board.split("|"))
        for column, mark in enumerate(line)
    }


def _find(cells: Mapping[Cell, str], mark: str) -> Cell:
    return next(cell for cell, own_mark in cells.items() if own_mark == mark)


def _next(cell: Cell, action: str) -> Cell:
    row, column = _MOVES[action]
    return cell[0] + row, cell[1] + column


def push() -> World:
    """Two boxes on two marks. A box at a wall stays there: many dead ends, all seen."""
    cells = _cells("#######|#P  . #|# $#  #|#  $ .#|#     #|#######")
    boxes = frozenset(cell for cell, mark in cells.items() if mark == "$")
    goals = frozenset(cell for cell, mark in cells.items() if mark == ".")
    free = {cell for cell, mark in cells.items() if mark != "#"}

    def outcomes(
        state: tuple[Cell, frozenset[Cell]], action: str
    ) -> dict[tuple[Cell, frozenset[Cell]], float]:
        player, boxes = state
        cell = _next(player, action)
        if cell not in boxes:
            return {(cell, boxes): 1.0} if cell in free else {}
        behind = _next(cell, action)
        if behind not in free or behind in boxes:
            return {}
        return {(cell, boxes - {cell} | {behind}): 1.0}

    return enumerate_world(
        name="push",
        horizon=30,
        actions=tuple(_MOVES),
        starts={(_find(cells, "P"), boxes): 1.0},
        outcomes=outcomes,
        view=lambda state: f"player {state[0]} boxes {sorted(state[1])}",
        end=lambda state: True if state[1] == goals else None,
    )


def cliff() -> World:
    """A walk along a cliff. Wind may push one cell to the south; who falls has lost."""
    cells = _cells("......|......|......|PxxxxG")
    goal, wind = _find(cells, "G"), 0.12

    def outcomes(state: Cell, action: str) -> dict[Cell, float]:
        cell = _next(state, action)
        if cell not in cells:
            return {}
        blown = _next(cell, "south")
        if cells[cell] in "xG" or blown not in cells:
            return {cell: 1.0}
        return {cell: 1 - wind, blown: wind}

    return enumerate_world(
        name="cliff",
        horizon=20,
        actions=tuple(_MOVES),
        starts={_find(cells, "P"): 1.0},
        outcomes=outcomes,
        view=lambda state: f"row {state[0]} column {state[1]}",
        end=lambda state: True if state == goal else (False if cells[state] == "x" else None),
    )


def maze() -> World:
    """A maze of which only the walls around one cell are seen: many cells look alike."""
    cells = _cells("#########|#P  #   #|# # # # #|# #   # #|# ##### #|#     #G#|#########")
    goal = _find(cells, "G")

    def outcomes(state: Cell, action: str) -> dict[Cell, float]:
        cell = _next(state, action)
        return {cell: 1.0} if cells[cell] != "#" else {}

    def view(state: Cell) -> str:
        ways = [action for action in _MOVES if cells[_next(state, action)] != "#"]
        return "the exit" if state == goal else f"ways: {' '.join(ways)}"

    return enumerate_world(
        name="maze",
        horizon=40,
        actions=tuple(_MOVES),
        starts={_find(cells, "P"): 1.0},
        outcomes=outcomes,
        view=view,
        end=lambda state: True if state == goal else None,
    )


def vault() -> World:
    """A key opens a door between rooms; only a cell, those beside it and the bag are seen."""
    cells = _cells("#########|#k  #   #|#   D   #|#P  #  G#|#########")
    goal, door, key = (_find(cells, mark) for mark in "GDk")

    def outcomes(state: tuple[Cell, str], action: str) -> dict[tuple[Cell, str], float]:
        place, bag = state
        near = [_next(place, move) for move in _MOVES]
        if action == "take key":
            return {(place, "key"): 1.0} if place == key and bag == "nothing" else {}
        if action == "unlock door":
            return {(place, "open"): 1.0} if door in near and bag == "key" else {}
        cell = _next(place, action)
        is_shut = cell == door and bag != "open"
        return {} if cells[cell] == "#" or is_shut else {(cell, bag): 1.0}

    def view(state: tuple[Cell, str]) -> str:
        place, bag = state
        seen = "".join(cells[cell] for cell in (place, *(_next(place, move) for move in _MOVES)))
        return f"{seen.replace('P', ' ').replace('k', 'k' * (bag == 'nothing') or ' ')} bag: {bag}"

    return enumerate_world(
        name="vault",
        horizon=30,
        actions=(*_MOVES, "take key", "unlock door"),
        starts={(_find(cells, "P"), "nothing"): 1.0},
        outcomes=outcomes,
        view=view,
        end=lambda state: True if state[0] == goal else None,
    )
