"""Batches of sixteen tasks for design, from those that nobody fails to those that nobody solves.

The tasks of a batch are alike, and their policy sees what they share: so what it learns of one, it
does in all. What is logged says more.
"""

from experiments.credit_truth.union import union
from experiments.credit_truth.world import World, enumerate_world

_Code = tuple[bool, str, str, int]
_Desk = tuple[int, str, str]
_Shop = tuple[int, bool, str]


def bugs() -> World:
    """Code to mend: reading first, patches or a rewrite, tests or none before it is handed in."""
    hard = [(0.0, 0.0, 0.0)] * 3
    easy = [(1.0, 1.0, 1.0)] * 3
    between = [(0.7, 0.8, 0.1), (0.5, 0.9, 0.5), (0.1, 0.8, 0.3), (0.0, 0.5, 0.1), (0.3, 0.3, 0.9)]
    between += [
        (0.0, 0.1, 0.7),
        (0.9, 0.9, 0.6),
        (0.2, 0.6, 0.0),
        (0.0, 0.2, 0.0),
        (0.05, 0.3, 0.3),
    ]
    return union("bugs", [_bug(*chances) for chances in (*hard, *easy, *between)])


def _bug(blind: float, informed: float, rewrite: float) -> World:
    """Return a task by the chances that a patch mends it, unread or read, and a rewrite."""

    def outcomes(state: _Code, action: str) -> dict[_Code, float]:
        read, code, tests, edits = state
        if action == "read":
            return {(True, code, tests, edits): 1.0} if not read else {}
        if action == "submit":
            return {(read, code, "in", edits): 1.0}
        if action == "test":
            seen = "green" if code == "mended" else "red"
            return {(read, code, seen, edits): 1.0} if not tests else {}
        chance = rewrite if action == "rewrite" else informed if read else blind
        kept = 0.6 if code == "mended" else 0.0
        chance = chance + (1 - chance) * kept
        after = {(read, "mended", "", min(edits + 1, 5)): chance}
        after[read, "open", "", min(edits + 1, 5)] = 1 - chance
        return after

    return enumerate_world(
        name="bug",
        horizon=16,
        actions=("read", "patch", "rewrite", "test", "submit"),
        starts={(False, "mended" if rewrite == 1 else "open", "", 0): 1.0},
        outcomes=outcomes,
        view=lambda state: (
            f"{'read' if state[0] else 'unread'}, {state[2]}, {min(state[3], 2)} edits"
        ),
        text=lambda state: f"{'read' if state[0] else 'unread'}, {state[2]}, {state[3]} edits",
        end=lambda state: state[1] == "mended" if state[2] == "in" else None,
    )


def desk() -> World:
    """Support: ask or assume at first, offer or refuse half way, 6 to 60 messages of routine."""
    asked = (0.0, 0.0, 1.0, 1.0, 0.95, 0.9, 0.9, 0.8, 0.7, 0.6, 0.4, 0.3, 0.95, 0.9, 0.6, 0.2)
    assumed = (0.0, 0.0, 1.0, 1.0, 0.9, 0.7, 0.3, 0.4, 0.1, 0.2, 0.05, 0.0, 0.5, 0.1, 0.7, 0.3)
    refused = (1.0, 0.5, 1.0, 1.0, 0.9, 0.9, 1.0, 0.6, 0.5, 1.0, 1.0, 0.8, 0.3, 0.9, 0.4, 1.0)
    lengths = (20, 6, 30, 12, 8, 40, 60, 16, 24, 10, 30, 50, 14, 36, 20, 12)
    tasks = zip(asked, assumed, refused, lengths, strict=True)
    return union("desk", [_desk(*task) for task in tasks])


def _desk(asked: float, assumed: float, refused: float, length: int) -> World:
    """Return a task by the chances after asking, assuming and refusing, and its messages."""
    half = length // 2

    def outcomes(state: _Desk, action: str) -> dict[_Desk, float]:
        message, known, end = state
        kind = ("ask", "assume") if not message else ("offer", "refuse")
        if message in (0, half):
            if action not in kind:
                return {}
            said = action if not message else f"{known}, {action}"
            return {(message + 1, said, end): 1.0}
        if action not in ("reply", "look up"):
            return {}
        if message < length:
            return {(message + 1, known, end): 1.0}
        chance = asked if known.startswith("ask") else assumed
        chance *= refused if known.endswith("refuse") else 1.0
        return {(message, known, "solved"): chance, (message, known, "open"): 1.0 - chance}

    def phase(state: _Desk) -> str:
        message, _, end = state
        return end or ("start" if not message else "half" if message == half else "between")

    return enumerate_world(
        name="desk",
        horizon=61,
        actions=("ask", "assume", "offer", "refuse", "reply", "look up"),
        starts={(0, "", ""): 1.0},
        outcomes=outcomes,
        view=phase,
        text=lambda state: f"message {state[0]} {state[2]}",
        end=lambda state: state[2] == "solved" if state[2] else None,
    )


def shops() -> World:
    """Web: a thing to find in pages of results; filters help in some shops, and harm in others."""
    pages = (9, 9, 0, 0, 0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 4, 4)
    filters = (0.0, 0.0, 1.0, 1.0, 0.9, 0.9, 0.9, 0.8, 0.0, 0.9, 0.7, 0.1, 0.0, 0.9, 0.9, 0.6)
    clear = (0.0, 0.0, 1.0, 1.0, 0.6, 0.8, 0.9, 0.5, 0.9, 0.7, 0.6, 0.9, 0.8, 0.6, 0.9, 0.8)
    return union("shops", [_shop(*task) for task in zip(pages, filters, clear, strict=True)])


def _shop(page: int, filtered: float, clear: float) -> World:
    """Return a task by the thing's page, and the chances that a filter and opening find it."""

    def outcomes(state: _Shop, action: str) -> dict[_Shop, float]:
        at, found, shown = state
        if shown:
            if action == "back":
                return {(at, found, ""): 1.0}
            bought = "bought" if shown == "right" else "mistaken"
            return {(at, found, bought): 1.0} if action == "buy" else {}
        if action == "next":
            return {(at + 1, found, ""): 1.0} if at < 4 else {}
        if action == "filter":
            after = {(0, True, ""): filtered, (5, False, ""): 1 - filtered}
            return after if at < 5 else {}
        if action != "open":
            return {}
        is_here = at == (0 if found else page)
        chance = clear if is_here else 1.0 if clear == 1 else 0.0
        return {(at, found, "right"): chance, (at, found, "other"): 1 - chance}

    return enumerate_world(
        name="shop",
        horizon=12,
        actions=("open", "next", "filter", "back", "buy"),
        starts={(0, False, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: (
            state[2] or ("first" if not state[0] else "more" if state[0] < 5 else "")
        ),
        text=lambda state: f"page {state[0]}{', filtered' * state[1]} {state[2]}",
        end=lambda state: {"bought": True, "mistaken": False}.get(state[2]),
    )
