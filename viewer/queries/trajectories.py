"""The query for the trajectories that a user looks for."""

from collections.abc import Sequence

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.advantages import by_trajectory
from graphcredit.viewer.queries.outcomes import IS_GRADED
from graphcredit.viewer.queries.rollouts import TRAJECTORIES
from graphcredit.viewer.queries.views import answer

MOST_TRAJECTORIES = 2000
"""Most trajectories to return, the first in the order."""

OUTCOMES = {
    "any": "true",
    "succeeded": "success",
    "not succeeded": "NOT success",
    "unfinished": "success IS NULL AND NOT is_complete",
    "incomplete": "NOT is_complete",
}
"""Outcome to an SQL condition."""

ORDERS = {
    "most disagreement": "disagreement DESC NULLS LAST",
    "most credit": "most DESC NULLS LAST",
    "most blame": "least NULLS LAST",
    "longest": "num_steps DESC",
    "shortest": "num_steps",
    "name": "task_id",
}
"""Order of the rows to SQL."""


def found_trajectories(
    store: Store,
    *,
    run_id: str,
    iteration: int,
    estimator: str | None,
    others: Sequence[str] = (),
    outcome: str = "any",
    text: str = "",
    order: str = "most disagreement",
) -> pa.Table:
    """Return the trajectories that fit all conditions, at most `MOST_TRAJECTORIES`.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        estimator: Whose advantages to give; None for an iteration without credit.
        others: All estimators, for the disagreement.
        outcome: A key of `OUTCOMES`.
        text: Stands in the names of task or trajectory, whatever the case.
        order: A key of `ORDERS`.

    Returns:
        `task_id, trajectory_id, num_steps, return, success, is_complete, is_graded, disagreement,
        most, least, num_found`: the greatest and the least advantage, and how many fit in total.
        Disagreement is null with one estimator.
    """
    sql = f"""
        WITH credited AS ({_credit(estimator, others)}),
        fitting AS (
            SELECT
                task_id, trajectory_id, num_steps, "return", success, is_complete,
                {IS_GRADED} AS is_graded, disagreement, most, least
            FROM trajectory LEFT JOIN credited USING (trajectory_id)
            WHERE {OUTCOMES[outcome]}
                AND (contains(lower(task_id), lower($1))
                    OR contains(lower(trajectory_id), lower($1)))
        )
        SELECT *, count(*) OVER () AS num_found FROM fitting
        ORDER BY {ORDERS[order]}, task_id, trajectory_id
        LIMIT {MOST_TRAJECTORIES}
    """
    return answer(store, sql, [text], run_id=run_id, iteration=iteration, tables=TRAJECTORIES)


def _credit(estimator: str | None, others: Sequence[str]) -> str:
    if estimator is None:
        return """
            SELECT NULL::VARCHAR AS trajectory_id, NULL::DOUBLE AS disagreement,
                NULL::FLOAT AS most, NULL::FLOAT AS least
            WHERE false
        """
    return f"""
        SELECT trajectory_id, num_disagreeing / num_counted AS disagreement, most, least
        FROM ({by_trajectory(estimator, others)})
    """
