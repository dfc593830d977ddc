"""Batches of sixteen tasks that judge. Who designs an estimator does not look at these rules."""

from experiments.credit_truth.union import union
from experiments.credit_truth.world import World, enumerate_world

_Query = tuple[bool, str, int, str]
_Trip = tuple[int, int, str, str]
_Intake = tuple[int, bool, bool, str]

_SHOWN = {"": "nothing", "error": "error", "right": "rows", "wrong": "rows"}


def queries() -> World:
    """Questions to a database: the schema is read or guessed, a query runs, errors are shown."""
    guessed = (0.0, 0.0, 1.0, 1.0, 0.9, 0.6, 0.4, 0.2, 0.1, 0.05, 0.0, 0.3, 0.7, 0.1, 0.5, 0.0)
    informed = (0.0, 0.0, 1.0, 1.0, 0.9, 0.9, 0.9, 0.8, 0.8, 0.7, 0.4, 0.3, 0.6, 0.2, 0.5, 0.1)
    silent = (1.0, 0.5, 0.0, 0.0, 0.0, 0.5, 0.2, 0.8, 0.5, 0.9, 0.3, 0.6, 0.1, 0.7, 1.0, 0.5)
    return union("queries", [_query(*task) for task in zip(guessed, informed, silent, strict=True)])


def _query(guessed: float, informed: float, silent: float) -> World:
    """Return a task by the chances of a right query, and that a wrong one shows no error."""

    def outcomes(state: _Query, action: str) -> dict[_Query, float]:
        schema, result, runs, _ = state
        if action == "schema":
            return {} if schema else {(True, result, runs, ""): 1.0}
        if action == "answer":
            return {(schema, result, runs, "answered"): 1.0} if result else {}
        if runs == 4:
            return {}
        chance = (informed if schema else guessed) * (0.6 if action == "join" else 1.0)
        return {
            (schema, "right", runs + 1, ""): chance,
            (schema, "wrong", runs + 1, ""): (1 - chance) * silent,
            (schema, "error", runs + 1, ""): (1 - chance) * (1 - silent),
        }

    return enumerate_world(
        name="query",
        horizon=12,
        actions=("schema", "select", "join", "answer"),
        starts={(False, "", 0, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: f"{'schema, ' * state[0]}{_SHOWN[state[1]]} {state[3]}",
        text=lambda state: f"{'schema, ' * state[0]}{_SHOWN[state[1]]} {state[2]} {state[3]}",
        end=lambda state: state[1] == "right" if state[3] else None,
    )


def trips() -> World:
    """Bookings: dear or cheap at three stops of 10 to 50 steps; what is spent is missing."""
    lengths = (12, 30, 10, 20, 16, 50, 24, 12, 40, 18, 30, 10, 20, 36, 14, 26)
    budgets = (0, 0, 6, 6, 6, 6, 6, 4, 3, 6, 2, 6, 4, 1, 6, 6)
    risks = (1.0, 1.0, 0.0, 0.0, 0.1, 0.3, 0.5, 0.2, 0.3, 0.5, 0.2, 0.35, 0.6, 0.3, 0.7, 0.8)
    return union("trips", [_trip(*task) for task in zip(lengths, budgets, risks, strict=True)])


def _trip(length: int, budget: int, risk: float) -> World:
    """Return a task by its steps, its budget, and the chance that something cheap falls through."""
    stops = (1, length // 2, length - 1)

    def outcomes(state: _Trip, action: str) -> dict[_Trip, float]:
        step, money, trouble, _ = state
        if (step in stops) != (action in ("dear", "cheap")):
            return {}
        end = "over" if step + 1 == length else ""
        if action == "dear":
            left = money - 2
            return {(step + 1, max(left, 0), trouble if left >= 0 else "trouble", end): 1.0}
        harm = risk if action == "cheap" else 0.0
        return {
            (step + 1, money, "trouble", end): 1.0 if trouble else harm,
            (step + 1, money, "", end): 0.0 if trouble else 1 - harm,
        }

    return enumerate_world(
        name="trip",
        horizon=50,
        actions=("dear", "cheap", "browse", "compare"),
        starts={(0, budget, "", ""): 1.0},
        outcomes=outcomes,
        view=lambda state: f"stop {stops.index(state[0])}" if state[0] in stops else "way",
        text=lambda state: f"step {state[0]}, {state[1]} left {state[3]}",
        end=lambda state: not state[2] if state[3] else None,
    )


def intakes() -> World:
    """Forms: fields are checked or passed over, mistakes show late or never; no two forms meet."""
    fields = (8, 20, 6, 12, 30, 10, 40, 16, 24, 8, 14, 20, 36, 10, 18, 28)
    wrong = (1.0, 0.9, 0.0, 0.0, 0.04, 0.3, 0.1, 0.25, 0.2, 0.5, 0.4, 0.2, 0.15, 0.7, 0.35, 0.5)
    seen = (0.0, 0.3, 0.5, 1.0, 0.9, 0.95, 0.95, 0.9, 0.99, 0.9, 0.8, 0.8, 0.95, 0.9, 1.0, 0.6)
    return union("intakes", [_intake(*task) for task in zip(fields, wrong, seen, strict=True)])


def _intake(fields: int, wrong: float, seen: float) -> World:
    """Return a task by its fields, of which each fourth is hard: how often it is wrong, or seen."""

    def outcomes(state: _Intake, action: str) -> dict[_Intake, float]:
        field, checked, bad, _ = state
        is_hard = field % 4 == 0
        if action == "check":
            return {(field, True, bad, ""): 1.0} if is_hard and not checked else {}
        if action == "skim" and not is_hard:
            return {}
        harm = wrong * (1 - seen * checked) if is_hard else 0.0
        harm = min(1.0, harm * 1.5) if action == "skim" else harm
        end = "sent" if field + 1 == fields else ""
        return {
            (field + 1, False, True, end): 1.0 if bad else harm,
            (field + 1, False, False, end): 0.0 if bad else 1 - harm,
        }

    return enumerate_world(
        name="intake",
        horizon=52,
        actions=("fill", "check", "skim"),
        starts={(0, False, False, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: ("checked" if state[1] else "hard") if state[0] % 4 == 0 else "easy",
        text=lambda state: f"field {state[0]}{', checked' * state[1]} {state[3]}",
        own=lambda state: state[0] > 0,
        end=lambda state: not state[2] if state[3] else None,
    )
