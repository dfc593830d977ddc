"""A query for steps whose credit contradicts the outcome of their trajectory."""

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.store.sql.summaries import Summarised
from graphcredit.store.sql.views import quoted
from graphcredit.viewer.queries.estimators import column
from graphcredit.viewer.queries.rollouts import TRAJECTORIES
from graphcredit.viewer.queries.truth import REPLAYED
from graphcredit.viewer.queries.views import answer


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
        oracle_distance, next_oracle_distance, q_minus_v`, the greatest advantage first. The last
        one is null unless the step was replayed.
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
                oracle_distance, next_oracle_distance, q_minus_v
            FROM step JOIN steps USING (trajectory_id, step_index)
            LEFT JOIN ({REPLAYED}) USING (task_id, trajectory_id, step_index, action)
            ORDER BY size DESC, trajectory_id
        """

    return answer(store, sql, run_id=run_id, iteration=iteration, tables=TRAJECTORIES)
