"""The states of a task, and the texts that became each of them.

It reads the store alone, so it shows what credit was computed with, whoever merged the texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.layout import Store
from graphcredit.store.near_names import did_you_mean
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.sql.catalog import connect
from graphcredit.store.text_diff import WordDiff, compare


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

    @property
    def visits(self) -> int:
        """How often trajectories were there."""
        return sum(text.visits for text in self.texts)

    def differences(self) -> Iterator[WordDiff]:
        """Yield how each other text differs from the most visited one."""
        first, *others = self.texts
        return (compare(first.text, other.text) for other in others)


@dataclass(frozen=True, kw_only=True, slots=True)
class StatesOfTask:
    """What the texts of a task became."""

    run_id: str
    iteration: int
    task_id: str
    states: tuple[TextsOfState, ...]
    """All states but the goal, the one with the most texts first."""

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
        return asdict(self)


def states_of_task(store: Store, task_id: str, *, run_id: str, iteration: int) -> StatesOfTask:
    """Return what became one state in a task.

    Args:
        store: A store with credit.
        task_id: The task.
        run_id: The run.
        iteration: The iteration.

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
    return StatesOfTask(
        run_id=run_id,
        iteration=iteration,
        task_id=task_id,
        states=tuple(sorted(states, key=lambda state: -len(state.texts))),
    )


_TEXTS = """
    WITH step AS (FROM enriched WHERE task_id = $task AND state_id IS NOT NULL),
    visit AS (
        SELECT state_id, state AS text FROM step
        UNION ALL
        SELECT next_state_id, next_state FROM step WHERE terminated OR truncated
    )
    SELECT state_id, text, count(*)
    FROM visit ANTI JOIN (FROM nodes WHERE task_id = $task AND is_goal) USING (state_id)
    GROUP BY state_id, text ORDER BY state_id, count(*) DESC, text
"""
"""Every text of every state but the goal: where an episode ends, too."""


def _state(state_id: int, rows: Sequence[tuple[Any, ...]]) -> TextsOfState:
    return TextsOfState(
        state_id=state_id, texts=tuple(Text(text=text, visits=visits) for _, text, visits in rows)
    )
