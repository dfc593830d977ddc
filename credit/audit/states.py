"""The states of a task: texts that were merged, and states that are nearly alike.

It reads the store alone, so it shows what credit was computed with, whoever merged the texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, groupby, islice
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.near_names import did_you_mean
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.sql.catalog import connect
from graphcredit.store.text_diff import WordDiff, compare

_MOST_COMPARED = 300
"""States whose pairs are looked through, those with the most visits; the time is quadratic."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A distinct text of a state."""

    text: str
    visits: int
    """How often trajectories were there with this text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextsOfState:
    """A state, and its texts."""

    state_id: int
    texts: tuple[Text, ...]
    """The most visited first."""
    lists: frozenset[str]
    """The lists of admissible actions that were logged there, each as text."""

    @property
    def visits(self) -> int:
        """How often trajectories were there."""
        return sum(text.visits for text in self.texts)

    def differences(self) -> Iterator[WordDiff]:
        """Yield how each other text differs from the most visited one."""
        first, *others = self.texts
        return (compare(first.text, other.text) for other in others)


@dataclass(frozen=True, kw_only=True, slots=True)
class NearStates:
    """Two states whose texts are much alike, and that are two all the same."""

    first: int
    second: int
    """State ids."""
    ratio: float
    """Share of words that their most visited texts have in common."""
    lines: str
    """What only one of them has."""
    has_other_actions: bool
    """Whether their admissible actions differ: that alone keeps them apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatesOfTask:
    """What the texts of a task became."""

    run_id: str
    iteration: int
    task_id: str
    states: tuple[TextsOfState, ...]
    """All states but the goal, the one with the most texts first."""
    near: tuple[NearStates, ...]
    """The pairs that are most alike, the most alike first."""
    num_compared: int
    """States whose pairs were looked through."""

    @property
    def num_texts(self) -> int:
        """Number of distinct texts."""
        return sum(len(state.texts) for state in self.states)

    @property
    def merged(self) -> tuple[TextsOfState, ...]:
        """The states with more than one text."""
        return tuple(state for state in self.states if len(state.texts) > 1)

    def as_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        values = asdict(self)
        for state in values["states"]:
            state["lists"] = sorted(state["lists"])
        return values


def states_of_task(
    store: Store, task_id: str, *, run_id: str, iteration: int, num_near: int = 5
) -> StatesOfTask:
    """Return what became one state in a task.

    Args:
        store: A store with credit.
        task_id: The task.
        run_id: The run.
        iteration: The iteration.
        num_near: Most pairs of states that are nearly alike.

    Raises:
        InputError: The task has no credit there.
    """

    def read() -> list[tuple[Any, ...]]:
        with connect(store, run_id=run_id, iteration=iteration, sql=_TEXTS) as connection:
            return connection.execute(_TEXTS, {"task": task_id}).fetchall()

    rows = unchanged(store, read, run_id=run_id, iteration=iteration)
    if not rows:
        with connect(store, run_id=run_id, iteration=iteration) as connection:
            tasks = connection.execute("SELECT DISTINCT task_id FROM nodes").fetchall()
        raise InputError(
            f"a task must have credit to show its states: found none of {task_id!r} in run "
            f"{run_id}, iteration {iteration} of {store.root}. `graphcredit credit` assigns it."
            + did_you_mean(task_id, (task for (task,) in tasks))
        )
    states = [_state(state_id, list(of)) for state_id, of in groupby(rows, lambda row: row[0])]
    states.sort(key=lambda state: (-state.visits, state.state_id))
    compared = states[:_MOST_COMPARED]
    return StatesOfTask(
        run_id=run_id,
        iteration=iteration,
        task_id=task_id,
        states=tuple(sorted(states, key=lambda state: -len(state.texts))),
        near=tuple(_near(compared, num_near)),
        num_compared=len(compared),
    )


_TEXTS = """
    WITH step AS (FROM enriched WHERE task_id = $task AND state_id IS NOT NULL),
    visit AS (
        SELECT state_id, state AS text, list_sort(admissible_actions)::VARCHAR AS list FROM step
        UNION ALL
        SELECT next_state_id, next_state, NULL FROM step WHERE terminated OR truncated
    )
    SELECT state_id, text, count(*), list(DISTINCT list) FILTER (list IS NOT NULL)
    FROM visit ANTI JOIN (FROM nodes WHERE task_id = $task AND is_goal) USING (state_id)
    GROUP BY state_id, text ORDER BY state_id, count(*) DESC, text
"""
"""Every text of every state but the goal: where an episode ends, too."""


def _state(state_id: int, rows: Sequence[tuple[Any, ...]]) -> TextsOfState:
    return TextsOfState(
        state_id=state_id,
        texts=tuple(Text(text=text, visits=visits) for _, text, visits, _ in rows),
        lists=frozenset(each for row in rows for each in row[3] or ()),
    )


def _near(states: Sequence[TextsOfState], number: int) -> Iterator[NearStates]:
    """Yield the pairs whose most visited texts have most words in common.

    Sets of words are compared first, because aligning words takes a thousand times as long.
    """
    words = [frozenset(state.texts[0].text.split()) for state in states]

    def overlap(pair: tuple[int, int]) -> float:
        first, second = (words[number] for number in pair)
        return len(first & second) / max(len(first | second), 1)

    likely = sorted(combinations(range(len(states)), 2), key=overlap, reverse=True)
    pairs = [_pair(states[a], states[b]) for a, b in islice(likely, 4 * number)]
    yield from sorted(pairs, key=lambda pair: -pair.ratio)[:number]


def _pair(first: TextsOfState, second: TextsOfState) -> NearStates:
    difference = compare(first.texts[0].text, second.texts[0].text)
    return NearStates(
        first=first.state_id,
        second=second.state_id,
        ratio=difference.ratio,
        lines=difference.lines,
        has_other_actions=bool(first.lists and second.lists and first.lists != second.lists),
    )
