"""Worlds whose episodes have a score between 0 and 1: errands, a program, a quiz, a basket."""

from collections.abc import Mapping

from experiments.credit_truth.world import World, enumerate_world

_Errands = tuple[int, frozenset[int]]
_Program = tuple[tuple[bool, ...], bool]
_Quiz = tuple[int, int, bool]
_Basket = tuple[tuple[str, ...], bool]


def errands() -> World:
    """Four errands in a street of four houses; each succeeds mostly, and there is little time."""
    houses = 4

    def outcomes(state: _Errands, action: str) -> dict[_Errands, float]:
        house, done = state
        if action == "do":
            return {(house, done | {house}): 0.8, state: 0.2} if house not in done else {}
        there = house + (1 if action == "on" else -1)
        return {(there, done): 1.0} if 0 <= there < houses else {}

    return enumerate_world(
        name="errands",
        horizon=10,
        actions=("on", "back", "do"),
        starts={(1, frozenset[int]()): 1.0},
        outcomes=outcomes,
        view=lambda state: f"house {state[0]}, done: {' '.join(map(str, sorted(state[1])))}",
        end=lambda state: True if len(state[1]) == houses else None,
        score=lambda state: len(state[1]) / houses,
    )


def program() -> World:
    """Edits mend some of four tests and break others; what is handed in is graded by its tests."""
    mends: Mapping[str, tuple[int, int | None]] = {
        "parse": (0, 1),
        "loop": (1, None),
        "cache": (2, 3),
        "lock": (3, None),
        "guess": (3, 0),
    }

    def outcomes(state: _Program, action: str) -> dict[_Program, float]:
        passed, _ = state
        if action == "submit":
            return {(passed, True): 1.0}
        mended, broken = mends[action]
        after = [value or number == mended for number, value in enumerate(passed)]
        worse = [value and number != broken for number, value in enumerate(after)]
        if worse == after:
            return {(tuple(after), False): 1.0}
        return {(tuple(after), False): 0.4, (tuple(worse), False): 0.6}

    return enumerate_world(
        name="program",
        horizon=9,
        actions=(*mends, "submit"),
        starts={((False, True, False, False), False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"tests {state[0]}{', handed in' * state[1]}",
        end=lambda state: all(state[0]) if state[1] else None,
        score=lambda state: sum(state[0]) / 4 * state[1],
    )


def quiz() -> World:
    """Six questions, right or wrong; one of them may be looked up, and looking up takes a turn."""
    questions, right = 6, "bacbca"

    def outcomes(state: _Quiz, action: str) -> dict[_Quiz, float]:
        question, points, knows = state
        if action == "look up":
            return {(question, points, True): 1.0} if not knows else {}
        is_right = action == right[question] and (question % 2 == 0 or knows)
        chance = 1.0 if is_right else 0.5 if action == right[question] else 0.0
        return {
            (question + 1, points + 1, False): chance,
            (question + 1, points, False): 1.0 - chance,
        }

    return enumerate_world(
        name="quiz",
        horizon=9,
        actions=("a", "b", "c", "look up"),
        starts={(0, 0, False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"question {state[0]}{', looked up' * state[2]}",
        end=lambda state: (state[1] == questions) if state[0] == questions else None,
        score=lambda state: state[1] / questions,
    )


def basket() -> World:
    """A colour, a size and a price to choose before buying; the score is what matches."""
    wanted = ("red", "large", "cheap")
    others = ("blue", "small", "dear")

    def outcomes(state: _Basket, action: str) -> dict[_Basket, float]:
        chosen, _ = state
        if action == "buy":
            return {(chosen, True): 1.0}
        kind = (wanted if action in wanted else others).index(action)
        after = (*chosen[:kind], action, *chosen[kind + 1 :])
        return {(after, False): 0.9, state: 0.1} if after != chosen else {state: 1.0}

    def score(state: _Basket) -> float:
        matching = sum(one == other for one, other in zip(state[0], wanted, strict=True))
        return matching / 3 * state[1]

    return enumerate_world(
        name="basket",
        horizon=8,
        actions=(*wanted, *others, "buy"),
        starts={(("", "small", "dear"), False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"{' '.join(state[0])}{', bought' * state[1]}",
        end=lambda state: (score(state) == 1) if state[1] else None,
        score=score,
    )
