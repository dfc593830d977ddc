"""A query for the trajectories of an iteration that a user looks for."""

from collections.abc import Sequence

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.store.sql.summaries import Summarised
from graphcredit.viewer.queries.advantages import by_trajectory
from graphcredit.viewer.queries.rollouts import TRAJECTORIES
from graphcredit.viewer.queries.views import answer

MOST_TRAJECTORIES = 2000
"""Most trajectories to return, the first in the order."""

OUTCOMES = {
    "any": "true",
    "succeeded": "success",
    "failed": "NOT success",
    "unfinished": "success IS NULL",
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

_TEXTS = ("action", "thought", "observation", "state", "next_state")


def found_trajectories(
    store: Store,
    *,
    run_id: str,
    iteration: int,
    estimator: str | None,
    others: Sequence[str] = (),
    outcome: str = "any",
    shortest: int | None = None,
    longest: int | None = None,
    disagreement: float | None = None,
    text: str = "",
    noted: Sequence[str] = (),
    only: Sequence[str] | None = None,
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
        shortest: Least number of steps; None for any.
        longest: Greatest number of steps; None for any.
        disagreement: Least share of credited steps at which two estimators have opposite signs.
        text: Stands in the names of task or trajectory, or in a text of a step, whatever the case.
        noted: Trajectories in whose notes the text stands; they are found, too.
        only: Look among these trajectories only; None for all.
        order: A key of `ORDERS`.

    Returns:
        `task_id, trajectory_id, num_steps, return, success, disagreement, most, least, num_found`:
        the greatest and the least advantage, and how many fit in total. Disagreement is null with
        one estimator.
    """

    def sql(summarised: Summarised) -> str:
        credit = _credit(estimator, others, has_summary=iteration in summarised.iterations)
        return f"""
            WITH credited AS ({credit}),
            written AS (
                SELECT DISTINCT trajectory_id FROM steps
                WHERE $1 <> '' AND ({" OR ".join(map(_contains, _TEXTS))})
            ),
            fitting AS (
                SELECT
                    task_id, trajectory_id, num_steps, "return", success, disagreement, most, least
                FROM trajectory LEFT JOIN credited USING (trajectory_id)
                WHERE {OUTCOMES[outcome]}
                    AND num_steps BETWEEN coalesce($2, 0) AND coalesce($3, num_steps)
                    AND ($4 IS NULL OR disagreement >= $4)
                    AND ($1 = '' OR {_contains("task_id")} OR {_contains("trajectory_id")}
                        OR trajectory_id IN (FROM written) OR list_contains($5, trajectory_id))
                    AND ($6 IS NULL OR list_contains($6, trajectory_id))
            )
            SELECT *, count(*) OVER () AS num_found FROM fitting
            ORDER BY {ORDERS[order]}, task_id, trajectory_id
            LIMIT {MOST_TRAJECTORIES}
        """

    parameters = [text, shortest, longest, disagreement, list(noted), only and list(only)]
    return answer(store, sql, parameters, run_id=run_id, iteration=iteration, tables=TRAJECTORIES)


def _contains(name: str) -> str:
    return f"coalesce(contains(lower({name}), lower($1)), false)"


def _credit(estimator: str | None, others: Sequence[str], *, has_summary: bool) -> str:
    if estimator is None:
        return """
            SELECT NULL::VARCHAR AS trajectory_id, NULL::DOUBLE AS disagreement,
                NULL::FLOAT AS most, NULL::FLOAT AS least
            WHERE false
        """
    return f"""
        SELECT trajectory_id, num_disagreeing / num_counted AS disagreement, most, least
        FROM ({by_trajectory(estimator, others, has_summary=has_summary)})
    """
