"""Queries for the trajectories that a user looks for, and for steps against their outcome."""

from collections.abc import Sequence

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.store.sql.summaries import Summarised
from graphcredit.store.sql.views import quoted
from graphcredit.viewer.queries.advantages import by_trajectory
from graphcredit.viewer.queries.estimators import column
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
                    AND ($1 = '' OR {_contains("task_id")} OR {_contains("trajectory_id")}
                        OR trajectory_id IN (FROM written) OR list_contains($2, trajectory_id))
                    AND ($3 IS NULL OR list_contains($3, trajectory_id))
            )
            SELECT *, count(*) OVER () AS num_found FROM fitting
            ORDER BY {ORDERS[order]}, task_id, trajectory_id
            LIMIT {MOST_TRAJECTORIES}
        """

    parameters = [text, list(noted), only and list(only)]
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


def against_outcome(
    store: Store, *, run_id: str, iteration: int, estimator: str, success: bool, num_rows: int
) -> pa.Table:
    """Return the most credited step of each failed trajectory, or the most blamed of each success.

    Trajectories without a step that contradicts their outcome are left out.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        estimator: The estimator of the advantages.
        success: Whether to look at successful trajectories, not failed ones.
        num_rows: Most trajectories; those with the greatest such advantages.

    Returns:
        `task_id, trajectory_id, step_index, action, advantage, goal_distance, next_goal_distance,
        oracle_distance, next_oracle_distance`, the greatest advantage first.
    """
    sign = "-" if success else ""
    advantage = f"{sign}{column(estimator, 'advantage')}::DOUBLE"
    summed = f"""
        SELECT trajectory_id, {sign}{"least" if success else "most"}::DOUBLE AS size
        FROM summary_advantages WHERE estimator = {quoted(estimator)}
    """
    counted = f"SELECT trajectory_id, max({advantage}) AS size FROM credit GROUP BY trajectory_id"

    def sql(summarised: Summarised) -> str:
        return f"""
            WITH best AS (
                FROM ({summed if iteration in summarised.iterations else counted}) WHERE size > 0
            ),
            found AS MATERIALIZED (
                FROM best
                SEMI JOIN (FROM trajectory WHERE success = {success}) USING (trajectory_id)
                ORDER BY size DESC, trajectory_id LIMIT {num_rows}
            ),
            -- Only now look for the steps: to carry them along would take twice as long.
            step AS MATERIALIZED (
                SELECT
                    trajectory_id, size, min(step_index) AS step_index,
                    arg_min_null(goal_distance, step_index) AS goal_distance,
                    arg_min_null(next_goal_distance, step_index) AS next_goal_distance
                FROM credit JOIN found USING (trajectory_id) WHERE {advantage} = size
                GROUP BY trajectory_id, size
            )
            SELECT
                task_id, trajectory_id, step_index, action,
                {sign}size AS advantage, goal_distance, next_goal_distance,
                oracle_distance, next_oracle_distance
            FROM step JOIN steps USING (trajectory_id, step_index)
            ORDER BY size DESC, trajectory_id
        """

    return answer(store, sql, run_id=run_id, iteration=iteration, tables=TRAJECTORIES)
