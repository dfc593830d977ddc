"""The decisions of a store that mattered most: an action in a state that changed how rollouts end.

A decision is an action that rollouts of a group took in one state. It is compared with what the
others did there: how rollouts ended that took it, and how those ended that were there and never
did. It counts by what `reach` says that it is worth, times the rollouts of the smaller side, and
only where the outcomes say the same.
"""

from dataclasses import dataclass
from typing import Any

from graphcredit.store.errors import InputError
from graphcredit.store.layout import AnyStore, Store, open_store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.sql.catalog import connect

_OF_ONE_GROUP = 3
"""Most decisions of one group, so that others have a place; more where there are few groups."""

_COMPARED = """
    WITH judged AS (
        SELECT run_id, iteration, task_id, trajectory_id, num_steps, "return", success AS won,
            count(DISTINCT "return") OVER here > (
                if(bool_and(success) OVER here = bool_or(success) OVER here, 1, 2)
            ) AS is_graded
        FROM trajectories WHERE is_complete AND {wanted}
        WINDOW here AS (PARTITION BY run_id, iteration, task_id)
    ), credited AS MATERIALIZED (
        SELECT run_id, iteration, task_id, trajectory_id, step_index, state_id, state, action,
            goal_distance, next_goal_distance, reach_advantage, reach_q - reach_value AS gain,
            num_steps, won, is_graded, if(is_graded, "return", won::INTEGER) AS outcome
        FROM enriched JOIN judged USING (run_id, iteration, task_id, trajectory_id)
        WHERE reach_advantage IS NOT NULL
    ), taken AS (
        SELECT run_id, iteration, task_id, state_id, action, trajectory_id,
            any_value(outcome) AS outcome, avg(gain) AS gain
        FROM credited GROUP BY ALL
    ), visited AS (
        SELECT run_id, iteration, task_id, state_id, count(*) AS visitors, sum(outcome) AS total
        FROM (
            SELECT DISTINCT run_id, iteration, task_id, state_id, trajectory_id, outcome
            FROM credited
        ) GROUP BY ALL
    ), compared AS (
        SELECT run_id, iteration, task_id, state_id, action, avg(gain) AS gain,
            count(*) AS num_took, avg(outcome) AS took,
            any_value(visitors) - count(*) AS num_others,
            (any_value(total) - sum(outcome)) / nullif(num_others, 0) AS others,
            any_value(total) / any_value(visitors) AS usual
        FROM taken JOIN visited USING (run_id, iteration, task_id, state_id)
        GROUP BY run_id, iteration, task_id, state_id, action
    ), ranked AS (
        SELECT *, abs(gain) * least(num_took, num_others) AS weight
        FROM compared {chosen}
    )
    SELECT ranked.* EXCLUDE (state_id, usual), credited.* EXCLUDE (
            run_id, iteration, task_id, state_id, action, gain
        )
    FROM ranked JOIN credited USING (run_id, iteration, task_id, state_id, action)
    {shown}
"""

_MOST_IMPORTANT = _COMPARED.format(
    wanted="true",
    chosen=f"""
        WHERE gain * (took - others) > 0
        QUALIFY row_number() OVER (
            PARTITION BY run_id, iteration, task_id ORDER BY weight DESC, state_id, action
        ) <= greatest({_OF_ONE_GROUP}, ceil($1 / (SELECT count(*) FROM groups)))
        ORDER BY weight DESC, run_id, iteration, task_id, state_id, action
        LIMIT $1
    """,
    shown="""
        QUALIFY row_number() OVER (
            PARTITION BY run_id, iteration, task_id, state_id, action
            ORDER BY ranked.gain > 0 AND outcome < usual AND step_index = num_steps - 1, outcome,
                abs(reach_advantage) DESC, trajectory_id, step_index
        ) = 1
        ORDER BY weight DESC, run_id, iteration, task_id, state_id, action
    """,
)

_OF_A_TRAJECTORY = _COMPARED.format(
    wanted="""
        (run_id, iteration, task_id) IN (
            SELECT (run_id, iteration, task_id) FROM trajectories WHERE trajectory_id = $2
        )
    """,
    chosen="WHERE gain * (took - others) > 0",
    shown="""
        WHERE trajectory_id = $2
        QUALIFY row_number() OVER (
            PARTITION BY run_id, iteration, task_id, state_id, action ORDER BY step_index
        ) = 1
        ORDER BY weight DESC, run_id, iteration, task_id, step_index
        LIMIT $1
    """,
)
_OF_A_STEP = _COMPARED.format(
    wanted="task_id = $1", chosen="", shown="WHERE trajectory_id = $2 AND step_index = $3"
)
_OF_A_TASK = _COMPARED.format(
    wanted="task_id = $1", chosen="", shown="ORDER BY trajectory_id, step_index"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedDecision:
    """An action in a state, what others did there, and the step of one rollout that shows it.

    Of the rollouts with the step, it is one that ended worst: what lost it, or what was good in it.
    A good step with which a failure ended is the last choice: there, something else was missing.
    """

    run_id: str
    iteration: int
    task_id: str
    trajectory_id: str
    step_index: int
    state: str
    action: str
    gain: float
    """What the action is worth there, in units of the group's returns: `reach_q - reach_value`."""
    num_took: int
    """Rollouts that took it there."""
    took: float
    """How they ended: the share of wins, or the mean return if `is_graded`."""
    num_others: int
    """Rollouts that were there and never took it."""
    others: float | None
    """How they ended; None if all took it."""
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
    """What decisions are ordered by."""


def decisions(
    store: AnyStore,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    trajectory_id: str | None = None,
    most: int = 10,
) -> list[ComparedDecision]:
    """Return the decisions that mattered most, the most important first.

    They are of the whole store, each shown by one rollout; or those of one trajectory, each shown
    by its first step with it.

    Raises:
        InputError: There is no such trajectory.
        SchemaError: A file cannot be read.
    """
    opened = open_store(store)
    if trajectory_id is None:
        return _ask(opened, _MOST_IMPORTANT, [most], run_id, iteration)
    shown = _ask(opened, _OF_A_TRAJECTORY, [most, trajectory_id], run_id, iteration)
    if not shown:
        _refuse_unknown(opened, trajectory_id, run_id, iteration)
    return shown


def _refuse_unknown(
    store: Store, trajectory_id: str, run_id: str | None, iteration: int | None
) -> None:
    with connect(store, run_id=run_id, iteration=iteration) as connection:
        where = "SELECT 1 FROM trajectories WHERE trajectory_id = $1 LIMIT 1"
        if connection.execute(where, [trajectory_id]).fetchone() is None:
            raise InputError(
                f"{store.root} has no trajectory {trajectory_id!r}. `graphcredit sql {store.root} "
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
    asked = [task_id, trajectory_id, step_index]
    return next(iter(_ask(open_store(store), _OF_A_STEP, asked, run_id, iteration)), None)


def decisions_of_task(
    store: AnyStore, *, run_id: str, iteration: int, task_id: str
) -> list[ComparedDecision]:
    """Return the decision of every step of a task that has credit by `reach`."""
    return _ask(open_store(store), _OF_A_TASK, [task_id], run_id, iteration)


def _ask(
    store: Store, sql: str, asked: list[Any], run_id: str | None, iteration: int | None
) -> list[ComparedDecision]:
    def ask() -> list[ComparedDecision]:
        views = connect(store, run_id=run_id, iteration=iteration, is_verified=True)
        with views as connection:
            answer = connection.execute(sql, asked)
            names = [column[0] for column in answer.description]
            return [
                ComparedDecision(**dict(zip(names, row, strict=True))) for row in answer.fetchall()
            ]

    return unchanged(store, ask, run_id=run_id, iteration=iteration)
