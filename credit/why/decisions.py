"""The decisions of a store that mattered most: an action in a state that changed how rollouts end.

A decision is an action that rollouts of a group took in one state. It is compared with what the
others did there: how rollouts ended that took it, and how those ended that were there and never
did. First come those that are beyond chance among all decisions, then those of choices that
recur and are so together (`pooled.py`), then the others, all by the lower end of the difference. A
decision counts only where its outcomes say the same as the credit that `reach` gives it.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from math import lgamma
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.credit.why.log import IS_GRADED, ShownStep
from graphcredit.credit.why.within import LEVEL, false_discovery, p_values
from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, open_store
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.sql.catalog import Connection, with_views

_OF_ONE_GROUP = 3
"""Most decisions of one group, so that others have a place; more where there are few groups."""

_COMPARED = """
    CREATE TEMP TABLE credited AS
    WITH judged AS (
        SELECT run_id, iteration, task_id, trajectory_id, num_steps, "return", success AS won,
            {is_graded} AS is_graded
        FROM trajectories WHERE is_complete AND {wanted}
        WINDOW here AS (PARTITION BY run_id, iteration, task_id)
    )
    SELECT run_id, iteration, task_id, trajectory_id, step_index, state_id, state, action,
        goal_distance, next_goal_distance, reach_advantage, num_steps, won, is_graded,
        if(is_graded, "return", won::INTEGER) AS outcome
    FROM enriched JOIN judged USING (run_id, iteration, task_id, trajectory_id)
    WHERE reach_advantage IS NOT NULL;

    CREATE TEMP TABLE compared AS
    WITH taken AS (
        SELECT run_id, iteration, task_id, state_id, action, trajectory_id,
            any_value(outcome) AS outcome, avg(reach_advantage) AS credit,
            any_value(is_graded) AS is_graded, max(step_index) = any_value(num_steps) - 1 AS is_last
        FROM credited GROUP BY ALL
    ), visited AS (
        SELECT run_id, iteration, task_id, state_id, count(*) AS visitors, sum(outcome) AS total,
            sum(outcome * outcome) - sum(outcome) * sum(outcome) / count(*) AS spread
        FROM (
            SELECT DISTINCT run_id, iteration, task_id, state_id, trajectory_id, outcome
            FROM credited
        ) GROUP BY ALL
    ), summed AS (
        SELECT run_id, iteration, task_id, state_id, action, avg(credit) AS credit,
            bool_and(is_last) AND NOT regexp_matches(action, '^ *[A-Za-z_][A-Za-z0-9_.:/-]*[(]')
                AND length(action) > 40 AS is_last_message,
            count(*) AS num_took, any_value(visitors) - num_took AS num_others,
            any_value(is_graded) AS is_graded, avg(outcome) AS took,
            (any_value(total) - sum(outcome)) / nullif(num_others, 0) AS others,
            any_value(total) / any_value(visitors) AS usual,
            any_value(visitors) AS visitors, any_value(spread) AS spread
        FROM taken JOIN visited USING (run_id, iteration, task_id, state_id)
        GROUP BY run_id, iteration, task_id, state_id, action
    ), sides AS (
        SELECT *, arg_max(action, (num_took, action), 2) OVER (
                PARTITION BY run_id, iteration, task_id, state_id
            ) AS most_did,
            took - others AS gap, num_took * num_others / visitors AS size,
            (num_took * took + 1) / (num_took + 2) AS chance,
            (num_others * others + 1) / (num_others + 2) AS other_chance
        FROM summed
    )
    SELECT * EXCLUDE (chance, other_chance, visitors, spread, size, most_did),
        if(action = most_did[1], most_did[2], most_did[1]) AS instead,
        sqrt(if(is_graded,
            (greatest(spread - size * gap * gap, 0) + spread / (visitors - 1))
                / (visitors - 1) / size,
            chance * (1 - chance) / num_took + other_chance * (1 - other_chance) / num_others
        )) AS error,
        sign(gap) * greatest(abs(gap) * size - if(is_graded, 0, 0.5), 0)
            / nullif(sqrt(size * spread / (visitors - 1)), 0) AS z,
        abs(gap) - 2 * error AS weight
    FROM sides
"""
"""The decisions. For ± of wins, a win and a failure are added to each side, since none or all of a
few is no certainty; for ± of returns, one rollout as far off as all of them are. `z` is that of all
ways to deal the outcomes to the rollouts, with the correction for continuity."""

_SHOWN = """
    SELECT compared.* EXCLUDE (state_id, usual, gap, z, is_last_message), credited.* EXCLUDE (
            run_id, iteration, task_id, state_id, action, is_graded
        )
    FROM compared JOIN credited USING (run_id, iteration, task_id, state_id, action)
    {which}
"""

_BY_ONE_ROLLOUT = _SHOWN.format(
    which="""
        WHERE compared.rowid IN (SELECT unnest($1))
        QUALIFY row_number() OVER (
            PARTITION BY compared.rowid
            ORDER BY credit > 0 AND outcome < usual AND step_index = num_steps - 1, outcome,
                abs(reach_advantage) DESC, trajectory_id, step_index
        ) = 1
        ORDER BY list_position($1, compared.rowid)
    """
)
_BY_ITS_FIRST_STEP = _SHOWN.format(
    which="""
        WHERE trajectory_id = $2 AND compared.rowid IN (SELECT unnest($1))
        QUALIFY row_number() OVER (PARTITION BY compared.rowid ORDER BY step_index) = 1
        ORDER BY list_position($1, compared.rowid)
    """
)
_OF_A_STEP = _SHOWN.format(which="WHERE trajectory_id = $1 AND step_index = $2")
_OF_ALL = _SHOWN.format(which="ORDER BY trajectory_id, step_index")
_TASK = "task_id = getvariable('asked')"
_GROUPS = """
    (run_id, iteration, task_id) IN (
        SELECT (run_id, iteration, task_id) FROM trajectories
        WHERE trajectory_id = getvariable('asked')
    )
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedDecision(ShownStep):
    """An action in a state, what others did there, and the step of one rollout that shows it.

    Of the rollouts with the step, it is one that ended worst: what lost it, or what was good in it.
    A good step with which a failure ended is the last choice: there, something else was missing.
    """

    state: str
    credit: float
    """The mean `reach_advantage` of those who took it there."""
    num_took: int
    """Rollouts that took it there."""
    took: float
    """How they ended: the share of wins, or the mean return if `is_graded`."""
    num_others: int
    """Rollouts that were there and never took it."""
    others: float | None
    """How they ended; None if all took it."""
    error: float | None
    """The standard error of `took - others`; None if all took it."""
    instead: str | None
    """What most of the others did there; None if all took it."""
    is_graded: bool
    """Whether returns are compared; else wins."""
    goal_distance: float | None
    next_goal_distance: float | None
    reach_advantage: float
    num_steps: int
    """Steps of the rollout."""
    won: bool
    """Whether it won."""
    outcome: float
    """Its return if `is_graded`; else 1 for a win."""
    weight: float
    """What decisions are ordered by: the size of the difference less two standard errors."""
    is_chance: bool | None = None
    """Whether among all decisions such a difference may be chance; None if it was not asked."""
    choice: int | None = None
    """The first of the choices that recur (`pooled.py`) by which its sides part; None: by none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """The decisions that mattered most, of all that can be compared."""

    decisions: list[ComparedDecision]
    num_sure: int
    """Decisions that are beyond chance among all."""
    num_compared: int
    """Decisions of which outcomes and credit say the same."""

    def first(self, most: int) -> "Ranked":
        """Return the same with fewer decisions."""
        return replace(self, decisions=self.decisions[:most])


def decisions(
    store: AnyStore,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    trajectory_id: str | None = None,
    most: int = 10,
) -> list[ComparedDecision]:
    """Return the decisions that mattered most, the most important first; see `ranked_in`."""
    ask = partial(ranked_in, trajectory_id=trajectory_id, most=most)
    return with_views(open_store(store), ask, run_id=run_id, iteration=iteration).decisions


def ranked_in(
    connection: Connection,
    *,
    trajectory_id: str | None = None,
    most: int,
    choices: Sequence[tuple[Set[str], float]] = (),
) -> Ranked:
    """Return the decisions that mattered most, the most important first, and how many are sure.

    They are of all views, each shown by one rollout, what lost and what won by turns; or those of
    one trajectory, each shown by its first step with it.

    Args:
        connection: Of a store with credit by `reach`.
        trajectory_id: Only the decisions of this one.
        most: Most decisions.
        choices: Choices that recur and are beyond chance: their actions, and their effect.

    Raises:
        InputError: There is no such trajectory.
    """
    if trajectory_id is not None:
        _refuse_unknown(connection, trajectory_id)
    _compare(connection, "true" if trajectory_id is None else _GROUPS, trajectory_id)
    table = connection.sql(
        """
        SELECT rowid, dense_rank() OVER (ORDER BY run_id, iteration, task_id) - 1 AS place,
            coalesce(gap, 0) AS gap, coalesce(error, 0) AS error, coalesce(z, 0) AS z, weight,
            num_took, num_others, is_last_message, action, instead
        FROM compared WHERE credit * gap > 0
        ORDER BY run_id, iteration, task_id, state_id, action
        """
    ).to_arrow_table()
    asked = [trajectory_id] * (trajectory_id is not None)
    sql = _BY_ONE_ROLLOUT if trajectory_id is None else _BY_ITS_FIRST_STEP
    columns = {name: numpy_of(table[name]) for name in table.column_names[:-2]}
    gap, error, z = columns["gap"], columns["error"], columns["z"]
    rarest = _rarest(columns["num_took"], columns["num_others"])
    p = np.maximum(p_values(z), rarest)
    is_sure = (false_discovery(p) <= LEVEL) & (np.abs(gap) > 2 * error)
    weight = np.round(columns["weight"], 9)  # sums of the same numbers may differ in the last digit
    choice = _choice_of(table, gap, choices)
    order = np.lexsort((-weight, choice, ~is_sure, columns["is_last_message"]))
    part = np.where(is_sure, 0, np.where(choice < len(choices), 1, 2))
    order = np.array(list(_by_turns(order, gap < 0, part)), int)
    if asked:
        here = "SELECT action, state_id, run_id, iteration, task_id FROM credited"
        own = connection.execute(
            f"SELECT rowid FROM compared WHERE (action, state_id, run_id, iteration, task_id) IN "
            f"({here} WHERE trajectory_id = $1)",
            asked,
        ).fetchall()
        order = order[np.isin(columns["rowid"][order], [row[0] for row in own])]
    num_groups = max(int(columns["place"].max(initial=0)) + 1, 1)
    of_one = most if asked else max(_OF_ONE_GROUP, -(-most // num_groups))
    chosen = list(_not_too_many(order, columns["place"], of_one))[:most]
    rows = [int(row) for row in columns["rowid"][chosen]]
    shown = _rows(connection, sql, [rows, *asked]) if rows else []
    return Ranked(
        decisions=[
            replace(
                each,
                is_chance=not is_sure[at],
                choice=int(choice[at]) if choice[at] < len(choices) else None,
            )
            for each, at in zip(shown, chosen, strict=True)
        ],
        num_sure=int(is_sure.sum()),
        num_compared=len(gap),
    )


def _choice_of(table: pa.Table, gap: Floats, choices: Sequence[tuple[Set[str], float]]) -> Ints:
    """Return the first choice that parts each decision's sides as they ended; else how many."""
    choice = np.full(len(gap), len(choices))
    for number, (actions, effect) in reversed(list(enumerate(choices))):
        did, others = (
            np.array([each in actions for each in table[side].to_pylist()], int)
            for side in ("action", "instead")
        )
        choice[(did - others) * effect * gap > 0] = number
    return choice


def _rarest(took: Ints, others: Ints) -> Floats:
    """Return how probable the rarest way to deal the outcomes is: no test of so few is surer."""
    deals = [
        lgamma(a + b + 1) - lgamma(a + 1) - lgamma(b + 1) for a, b in zip(took, others, strict=True)
    ]
    return np.minimum(2 * np.exp(-np.array(deals)), 1)


def _by_turns(order: Ints, is_loss: Bools, part: Ints) -> Iterator[int]:
    """Yield decisions, one part after the other: of each, what lost and what won by turns."""
    for number in np.unique(part):
        here = order[part[order] == number]
        for turn in zip_longest(here[is_loss[here]], here[~is_loss[here]]):
            yield from (int(each) for each in turn if each is not None)


def _not_too_many(order: Ints, group: Ints, most: int) -> Iterator[int]:
    """Yield decisions, no more than some of each group."""
    seen: dict[int, int] = {}
    for each in order:
        place = int(group[each])
        seen[place] = seen.get(place, 0) + 1
        if seen[place] <= most:
            yield int(each)


def _refuse_unknown(connection: Connection, trajectory_id: str) -> None:
    where = "SELECT 1 FROM trajectories WHERE trajectory_id = $1 LIMIT 1"
    if connection.execute(where, [trajectory_id]).fetchone() is None:
        raise InputError(
            f"the store has no rollout {trajectory_id!r}. `graphcredit sql STORE "
            '"SELECT trajectory_id FROM trajectories WHERE NOT success"` lists failures'
        )


def decision_of(
    store: AnyStore,
    *,
    run_id: str,
    iteration: int,
    task_id: str,
    trajectory_id: str,
    step_index: int,
) -> ComparedDecision | None:
    """Return the decision of a step, shown by this step; None if it has no credit by `reach`."""

    def ask(connection: Connection) -> list[ComparedDecision]:
        _compare(connection, _TASK, task_id)
        return _rows(connection, _OF_A_STEP, [trajectory_id, step_index])

    return next(iter(with_views(open_store(store), ask, run_id=run_id, iteration=iteration)), None)


def decisions_of_task(
    store: AnyStore, *, run_id: str, iteration: int, task_id: str
) -> list[ComparedDecision]:
    """Return the decision of every step of a task that has credit by `reach`."""

    def ask(connection: Connection) -> list[ComparedDecision]:
        _compare(connection, _TASK, task_id)
        return _rows(connection, _OF_ALL, [])

    return with_views(open_store(store), ask, run_id=run_id, iteration=iteration)


def _compare(connection: Connection, wanted: str, asked: str | None) -> None:
    connection.execute("SET VARIABLE asked = $1", [asked])
    connection.execute(_COMPARED.format(wanted=wanted, is_graded=IS_GRADED))


def _rows(connection: Connection, sql: str, asked: list[Any]) -> list[ComparedDecision]:
    answer = connection.execute(sql, asked)
    names = [column[0] for column in answer.description]
    return [ComparedDecision(**dict(zip(names, row, strict=True))) for row in answer.fetchall()]
