"""Long ways that judge. Who designs an estimator does not look at these rules.

As in `design_long.py`, what decides comes early or seldom and the rest is routine; but other tasks,
other lengths, other ways to spoil, to notice and to recover.
"""

from experiments.credit_truth.world import World, enumerate_world

_Migration = tuple[bool, int, str]
_Research = tuple[str, frozenset[str], int, str]
_Release = tuple[int, int]
_Ticket = tuple[str, int, bool]
_Refactor = tuple[int, int, str]
_Voyage = tuple[int, int, bool]


def migration() -> World:
    """Data: a backup is made or not at first; a move may fail late, and shows whether it did."""
    move, length = 45, 60

    def outcomes(state: _Migration, action: str) -> dict[_Migration, float]:
        backed, step, fault = state
        on = (backed, step + 1, "")
        if step == 0:
            begun = {"back up": True, "go on": False}
            return {(begun[action], 1, ""): 1.0} if action in begun else {}
        if fault:
            saved = {"restore": 1.0 if backed else 0.0, "force": 0.15}.get(action)
            return {} if saved is None else {on: saved, (backed, step, "lost"): 1 - saved}
        if step == move:
            fails = {"move all": 0.9, "move in parts": 0.2}.get(action)
            return {} if fails is None else {on: 1 - fails, (backed, step, "failed"): fails}
        return {on: 1.0} if action in ("convert", "compare") else {}

    return enumerate_world(
        name="migration",
        horizon=length + 1,
        actions=(
            *("back up", "go on", "convert", "compare"),
            *("move all", "move in parts", "restore", "force"),
        ),
        starts={(False, 0, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: f"table {state[1]} {state[2]}",
        end=lambda state: False if state[2] == "lost" else True if state[1] == length else None,
    )


def research() -> World:
    """Web: a question is typed first, pages are read in any order, and the answer comes last."""
    right = {"phrase": 0.97, "synonym": 0.6, "broad": 0.2, "old name": 0.03}
    pages, paragraphs = "abcd", 8

    def outcomes(state: _Research, action: str) -> dict[_Research, float]:
        asked, read, left, _ = state
        if not asked:
            return {(action, read, 0, ""): 1.0} if action in right else {}
        if left:
            return {(asked, read, left - 1, ""): 1.0} if action in ("scroll", "quote") else {}
        if len(read) < len(pages):
            is_new = action in pages and action not in read
            return {(asked, read | {action}, paragraphs, ""): 1.0} if is_new else {}
        known = right[asked]
        ends = {(asked, read, 0, "right"): known, (asked, read, 0, "wrong"): 1 - known}
        return ends if action == "answer" else {}

    return enumerate_world(
        name="research",
        horizon=45,
        actions=(*right, *pages, "scroll", "quote", "answer"),
        starts={("", frozenset[str](), 0, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: (
            f"{'results' if state[0] else 'blank'}, read {''.join(sorted(state[1]))}, "
            f"{state[2]} left {state[3]}"
        ),
        own=lambda state: state[2] % 2 == 1,
        end=lambda state: {"right": True, "wrong": False}.get(state[3]),
    )


def release() -> World:
    """Two hundred steps; at four of them a warning is read or waved through, two leave it lost."""
    length, warnings = 200, (10, 30, 90, 150)

    def outcomes(state: _Release, action: str) -> dict[_Release, float]:
        step, bad = state
        if (step in warnings) != (action in ("read", "wave")):
            return {}
        harm = {"read": 0.05, "wave": 0.75}.get(action, 0.0) if bad < 2 else 0.0
        return {(step + 1, bad + 1): harm, (step + 1, bad): 1 - harm}

    return enumerate_world(
        name="release",
        horizon=length,
        actions=("read", "wave", "build", "wait"),
        starts={(0, 0): 1.0},
        outcomes=outcomes,
        view=lambda state: f"job {state[0]}",
        end=lambda state: state[1] < 2 if state[0] == length else None,
    )


def ticket() -> World:
    """Support: a tone is chosen and shows; the customer leaves at any time; no two tickets meet."""
    length, leaves = 40, {"plain": 0.002, "formal": 0.02, "pushy": 0.06}

    def outcomes(state: _Ticket, action: str) -> dict[_Ticket, float]:
        tone, step, _ = state
        if not tone:
            return {(action, 0, False): 1.0} if action in leaves else {}
        if action not in ("ask", "tell", "thank"):
            return {}
        return {(tone, step, True): leaves[tone], (tone, step + 1, False): 1 - leaves[tone]}

    return enumerate_world(
        name="ticket",
        horizon=length + 1,
        actions=(*leaves, "ask", "tell", "thank"),
        starts={("", 0, False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"{state[0]}, message {state[1]}{', gone' * state[2]}",
        own=lambda state: state[1] > 0,
        end=lambda state: False if state[2] else True if state[1] == length else None,
    )


def refactor() -> World:
    """Code: sixty edits, a few of them risky; tests show what is broken, and it can be mended."""
    length, risky = 60, (8, 20, 44)

    def outcomes(state: _Refactor, action: str) -> dict[_Refactor, float]:
        step, broken, seen = state
        if seen:
            after = {"repair": {(step, 0, ""): 0.8, state: 0.2}, "edit": {(step + 1, 1, ""): 1.0}}
            return after.get(action, {})
        if action == "test" and step % 10 == 5:
            return {(step + 1, broken, "red" if broken else ""): 1.0}
        breaks = {"edit": 0.05, "sweep": 0.6}.get(action)
        if breaks is None:
            return {}
        harm = 1.0 if broken else breaks if step in risky else 0.0
        return {(step + 1, 1, ""): harm, (step + 1, 0, ""): 1 - harm}

    return enumerate_world(
        name="refactor",
        horizon=75,
        actions=("edit", "sweep", "test", "repair"),
        starts={(0, 0, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: f"edit {state[0]} {state[2]}",
        end=lambda state: not state[1] if state[0] >= length and not state[2] else None,
    )


def voyage() -> World:
    """A ship drifts by chance for ninety days; the course of one day decides where it ends."""
    days, lanes = 90, 5

    def outcomes(state: _Voyage, action: str) -> dict[_Voyage, float]:
        day, lane, astray = state
        if (day == 3) != (action in ("chart", "stars", "guess")):
            return {}
        lost = {"chart": 0.04, "stars": 0.4, "guess": 0.92}.get(action, float(astray))
        after: dict[_Voyage, float] = {}
        for drift in (-1, 0, 1):
            for off, share in ((True, lost), (False, 1 - lost)):
                where = (day + 1, (lane + drift) % lanes, off)
                after[where] = after.get(where, 0.0) + share / 3
        return after

    return enumerate_world(
        name="voyage",
        horizon=days,
        actions=("chart", "stars", "guess", "sail", "mend sails"),
        starts={(0, 0, False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"day {state[0]}, lane {state[1]}",
        end=lambda state: not state[2] if state[0] == days else None,
    )
