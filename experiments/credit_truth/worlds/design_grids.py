"""Places to walk: a frozen lake, a key and a door, a crate, a road, fog, and a hall of mirrors."""

from collections.abc import Mapping

from experiments.credit_truth.world import World, enumerate_world

_Cell = tuple[int, int]

_MOVES: Mapping[str, _Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

_LAKE = ("S....", ".H.H.", "...H.", "H....", "..H.G")
_CAVE = ("S.#...", ".#..#.", "...#.G")
_CORRIDORS = ("S...#", ".#.#.", "....G")


def _cells(board: tuple[str, ...]) -> dict[_Cell, str]:
    return {(r, c): mark for r, row in enumerate(board) for c, mark in enumerate(row)}


def _beside(cell: _Cell, action: str) -> _Cell:
    row, column = _MOVES[action]
    return cell[0] + row, cell[1] + column


def _lake(name: str, slip: float, horizon: int) -> World:
    cells = _cells(_LAKE)
    sides = {"up": ("left", "right"), "down": ("left", "right")}

    def outcomes(state: _Cell, action: str) -> dict[_Cell, float]:
        chances: dict[_Cell, float] = {}
        ways = {action: 1 - slip} | dict.fromkeys(sides.get(action, ("up", "down")), slip / 2)
        for way, chance in ways.items():
            there = _beside(state, way)
            there = there if there in cells else state
            if chance:
                chances[there] = chances.get(there, 0.0) + chance
        return chances

    return enumerate_world(
        name=name,
        horizon=horizon,
        actions=tuple(_MOVES),
        starts={(0, 0): 1.0},
        outcomes=outcomes,
        view=lambda state: f"cell {state[0]} {state[1]}",
        end=lambda state: {"G": True, "H": False}.get(cells[state]),
    )


def lake() -> World:
    """A frozen lake with holes; the ice holds."""
    return _lake("lake", 0.0, 20)


def slippery() -> World:
    """The same lake, on which a third of the steps slip to a side."""
    return _lake("slippery", 1 / 3, 30)


def crate() -> World:
    """One crate to push through a gap; in a corner it is lost."""
    cells = _cells(("......", ".##.#.", "......", "......"))
    free, goal = {cell for cell, mark in cells.items() if mark == "."}, (0, 4)

    def outcomes(state: tuple[_Cell, _Cell], action: str) -> dict[tuple[_Cell, _Cell], float]:
        player, crate = state
        there = _beside(player, action)
        if there == crate:
            crate = _beside(crate, action)
        return {(there, crate): 1.0} if there in free and crate in free else {}

    return enumerate_world(
        name="crate",
        horizon=24,
        actions=tuple(_MOVES),
        starts={((3, 0), (2, 2)): 1.0},
        outcomes=outcomes,
        view=lambda state: f"you at {state[0]}, the crate at {state[1]}",
        end=lambda state: True if state[1] == goal else None,
    )


def road() -> World:
    """A road of three lanes with cars that come in turns; who is hit has lost."""
    period, lanes = 4, 4

    def outcomes(state: tuple[int, int], action: str) -> dict[tuple[int, int], float]:
        lane, clock = state
        there = min(max(lane + {"go": 1, "wait": 0, "back": -1}[action], 0), lanes)
        now = (clock + 1) % period
        is_hit = 0 < there < lanes and (there * 2 + now) % period == 0
        if there == 0:
            return {(0, now): 1.0}
        return {(-1 if is_hit else there, now): 0.9, (there - 1, now): 0.1}

    return enumerate_world(
        name="road",
        horizon=12,
        actions=("go", "wait", "back"),
        starts={(0, clock): 1 / period for clock in range(period)},
        outcomes=outcomes,
        view=lambda state: f"lane {state[0]}, light {state[1]}",
        end=lambda state: {lanes: True, -1: False}.get(state[0]),
    )


def fog() -> World:
    """A cave in fog: the row is seen, and whether a wall is to the right. Cells look alike."""
    cells = _cells(_CAVE)

    def outcomes(state: _Cell, action: str) -> dict[_Cell, float]:
        there = _beside(state, action)
        return {there: 1.0} if cells.get(there, "#") != "#" else {state: 1.0}

    def view(state: _Cell) -> str:
        is_wall = cells.get(_beside(state, "right"), "#") == "#"
        return "light" if cells[state] == "G" else f"row {state[0]} {'wall' * is_wall}"

    return enumerate_world(
        name="fog",
        horizon=30,
        actions=tuple(_MOVES),
        starts={(0, 0): 1.0},
        outcomes=outcomes,
        view=view,
        end=lambda state: True if cells[state] == "G" else None,
    )


def mirrors() -> World:
    """A hall where a cell shows only how many ways lead out of it, and the way one came."""
    cells = _cells(_CORRIDORS)

    def is_free(cell: _Cell) -> bool:
        return cells.get(cell, "#") != "#"

    def outcomes(state: tuple[_Cell, str], action: str) -> dict[tuple[_Cell, str], float]:
        there = _beside(state[0], action)
        return {(there, action): 1.0} if is_free(there) else {(state[0], "nowhere"): 1.0}

    return enumerate_world(
        name="mirrors",
        horizon=24,
        actions=tuple(_MOVES),
        starts={((0, 0), "nowhere"): 1.0},
        outcomes=outcomes,
        view=lambda state: (
            "the way out"
            if cells[state[0]] == "G"
            else f"{sum(is_free(_beside(state[0], way)) for way in _MOVES)} ways, from {state[1]}"
        ),
        end=lambda state: True if cells[state[0]] == "G" else None,
    )
