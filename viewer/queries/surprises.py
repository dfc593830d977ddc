"""A query for steps whose credit contradicts the outcome of their trajectory."""

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import column
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
    advantage = f"{'-' if success else ''}{column(estimator, 'advantage')}::DOUBLE"
    sql = f"""
        WITH ended AS (
            SELECT trajectory_id FROM steps GROUP BY trajectory_id
            HAVING bool_or(success) = {success}
        ),
        best AS (
            SELECT trajectory_id, max(struct_pack(size := {advantage}, at := -step_index)) AS step
            FROM credit SEMI JOIN ended USING (trajectory_id)
            WHERE {advantage} > 0
            GROUP BY trajectory_id
        ),
        found AS (
            SELECT trajectory_id, -step.at AS step_index, step.size AS size FROM best
            ORDER BY size DESC, trajectory_id LIMIT {num_rows}
        )
        SELECT
            task_id, trajectory_id, step_index, action,
            {"-" if success else ""}size AS advantage, goal_distance, next_goal_distance,
            oracle_distance, next_oracle_distance, q_minus_v
        FROM found
        JOIN steps USING (trajectory_id, step_index) JOIN credit USING (trajectory_id, step_index)
        LEFT JOIN ({REPLAYED}) USING (task_id, trajectory_id, step_index, action)
        ORDER BY size DESC, trajectory_id
    """
    return answer(store, sql, run_id=run_id, iteration=iteration)
