"""Things to do: a puzzle, blocks, a door and a key, a farm, a pump, two levers, a letter."""

from collections.abc import Mapping

from experiments.credit_truth.world import World, enumerate_world

_Blocks = tuple[tuple[str, ...], ...]
_Farm = tuple[int, frozenset[str], int]
_Flat = tuple[str, str, str, frozenset[str]]


def _in_order(*stacks: tuple[str, ...]) -> _Blocks:
    """Return stacks of blocks so that their places on the table do not matter."""
    return tuple(sorted(stacks))


def puzzle() -> World:
    """A sliding puzzle of two rows and three columns, six moves from its goal."""
    start, goal = "41253_", "12345_"
    neighbours: Mapping[str, int] = {"up": -3, "down": 3, "left": -1, "right": 1}

    def outcomes(state: str, action: str) -> dict[str, float]:
        gap = state.index("_")
        there = gap + neighbours[action]
        is_same_row = gap // 3 == there // 3
        if not 0 <= there < 6 or (action in ("left", "right") and not is_same_row):
            return {}
        tiles = list(state)
        tiles[gap], tiles[there] = tiles[there], tiles[gap]
        return {"".join(tiles): 1.0}

    return enumerate_world(
        name="puzzle",
        horizon=24,
        actions=tuple(neighbours),
        starts={start: 1.0},
        outcomes=outcomes,
        view=lambda state: f"{' '.join(state[:3])} / {' '.join(state[3:])}",
        end=lambda state: True if state == goal else None,
    )


def blocks() -> World:
    """Four blocks to stack in order; a move may drop its block on the table."""
    names = "ABCD"

    def outcomes(state: _Blocks, action: str) -> dict[_Blocks, float]:
        block, place = action.split(" on ")
        source = next((stack for stack in state if stack[-1] == block), None)
        onto = next((stack for stack in state if stack[-1] == place), None)
        if source is None or (place != "table" and onto is None):
            return {}
        rest = [stack for stack in state if stack not in (source, onto)]
        below = [source[:-1]] if len(source) > 1 else []
        fallen = _in_order(*rest, *below, *([onto] if onto else []), (block,))
        if onto is None:
            return {fallen: 1.0}
        return {_in_order(*rest, *below, (*onto, block)): 0.85, fallen: 0.15}

    moves = [f"{one} on {other}" for one in names for other in (*names, "table") if one != other]
    return enumerate_world(
        name="blocks",
        horizon=14,
        actions=moves,
        starts={(("A", "C"), ("B",), ("D",)): 1.0},
        outcomes=outcomes,
        view=lambda state: ", ".join("".join(stack) for stack in state),
        end=lambda state: True if ("A", "B", "C", "D") in state else None,
    )


def flat() -> World:
    """A key in one of two drawers, a door, and a lamp, a radio and a tap that do nothing."""
    idle = ("lamp", "radio", "tap")

    def outcomes(state: _Flat, action: str) -> dict[_Flat, float]:
        key, room, hand, on = state
        if action in idle:
            return {(key, room, hand, on ^ {action}): 1.0}
        if action in ("left drawer", "right drawer"):
            held = "key" if hand != "key" and action.startswith(key) else hand
            return {(key, room, held, on): 1.0} if room == "hall" else {}
        if action == "walk":
            return {(key, "porch" if room == "hall" else "hall", hand, on): 1.0}
        is_out = room == "porch" and hand == "key"
        return {(key, "outside", hand, on): 1.0} if is_out else {state: 1.0}

    return enumerate_world(
        name="flat",
        horizon=12,
        actions=("left drawer", "right drawer", "walk", "unlock", *idle),
        starts={(side, "hall", "", frozenset[str]()): 0.5 for side in ("left", "right")},
        outcomes=outcomes,
        view=lambda state: f"{state[1]}, holding {state[2]}; on: {' '.join(sorted(state[3]))}",
        end=lambda state: True if state[1] == "outside" else None,
    )


def farm() -> World:
    """Three crops to gather in any order and bring home before the rain, which may come early."""
    crops = {1: "corn", 3: "peas", 5: "figs"}
    dry, wet = 0, 1

    def outcomes(state: _Farm, action: str) -> dict[_Farm, float]:
        field, basket, sky = state
        if action == "gather":
            crop = crops.get(field)
            basket = basket if crop is None else basket | {crop}
        else:
            field = min(max(field + (1 if action == "east" else -1), 0), 5)
        now = (field, basket, sky)
        return {now: 0.98, (field, basket, wet): 0.02} if sky == dry else {now: 1.0}

    def end(state: _Farm) -> bool | None:
        if state[2] == wet:
            return False
        return True if state[0] == 0 and len(state[1]) == len(crops) else None

    return enumerate_world(
        name="farm",
        horizon=22,
        actions=("west", "east", "gather"),
        starts={(0, frozenset[str](), dry): 1.0},
        outcomes=outcomes,
        view=lambda state: (
            f"field {state[0]}, basket: {' '.join(sorted(state[1]))}, sky {state[2]}"
        ),
        end=end,
    )


def pump() -> World:
    """A pump needs three strokes before the valve is opened; nobody sees how many it had."""
    full = 3

    def outcomes(state: tuple[str, int], action: str) -> dict[tuple[str, int], float]:
        place, strokes = state
        if action == "walk":
            return {("valve" if place == "pump" else "pump", strokes): 1.0}
        if action == "work" and place == "pump":
            return {(place, min(strokes + 1, full)): 1.0}
        if action == "work":
            return {("water" if strokes == full else "dry", strokes): 1.0}
        return {(place, max(strokes - 1, 0)): 1.0}

    return enumerate_world(
        name="pump",
        horizon=12,
        actions=("work", "walk", "rest"),
        starts={("pump", 0): 1.0},
        outcomes=outcomes,
        view=lambda state: state[0],
        end=lambda state: {"water": True, "dry": False}.get(state[0]),
    )


def lever() -> World:
    """Two levers in the first room open a gate in the last; the gate is not seen from anywhere."""
    gate = 4

    def outcomes(state: tuple[int, bool, bool], action: str) -> dict[tuple[int, bool, bool], float]:
        room, red, green = state
        if action in ("red", "green"):
            if room:
                return {}
            return {(room, red ^ (action == "red"), green ^ (action == "green")): 1.0}
        there = max(room + (1 if action == "on" else -1), 0)
        if there == gate and not (red and not green):
            return {(gate + 1, red, green): 1.0}
        return {(there, red, green): 1.0}

    return enumerate_world(
        name="lever",
        horizon=16,
        actions=("on", "back", "red", "green"),
        starts={(0, False, first): 0.5 for first in (True, False)},
        outcomes=outcomes,
        view=lambda state: (
            {gate: "outside", gate + 1: "trapped"}.get(state[0], f"room {state[0]}")
            + (f", a green light is {'on' if state[2] else 'off'}" if state[0] == 0 else "")
        ),
        end=lambda state: {gate: True, gate + 1: False}.get(state[0]),
    )


def letter() -> World:
    """A letter for one of four houses; its address is read at the post, and then remembered."""
    houses = 4

    def outcomes(state: tuple[int, int, bool], action: str) -> dict[tuple[int, int, bool], float]:
        address, place, is_read = state
        if action == "read":
            return {(address, place, is_read or place == 0): 1.0}
        if action == "deliver":
            return {(address, 9 if place == address + 1 else -1, is_read): 1.0} if place else {}
        there = min(max(place + (1 if action == "on" else -1), 0), houses)
        return {(address, there, is_read): 1.0}

    return enumerate_world(
        name="letter",
        horizon=12,
        actions=("on", "back", "read", "deliver"),
        starts={(address, 0, False): 1 / houses for address in range(houses)},
        outcomes=outcomes,
        view=lambda state: f"house {state[1]}, letter for {state[0] + 1 if state[2] else 'nobody'}",
        end=lambda state: {9: True, -1: False}.get(state[1]),
    )
