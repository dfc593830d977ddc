"""The queries of the Trajectory page: trajectories of a task, their steps, steps from one state."""

from typing import Any

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import column
from graphcredit.viewer.queries.views import answer


def task_ids(store: Store, *, run_id: str, iteration: int) -> list[str]:
    """Return the tasks of an iteration, sorted."""
    sql = "SELECT DISTINCT task_id FROM steps ORDER BY task_id"
    tasks = answer(store, sql, run_id=run_id, iteration=iteration)
    return tasks["task_id"].to_pylist()


def trajectories(store: Store, *, run_id: str, iteration: int, task_id: str) -> pa.Table:
    """Return the trajectories of a task, failed ones first.

    Returns:
        `trajectory_id, num_steps, return, success, is_ended`; success is null if no step has it.
    """
    sql = """
        SELECT
            trajectory_id, count(*)::INTEGER AS num_steps,
            sum(reward ORDER BY step_index) AS "return", bool_or(success) AS success,
            coalesce(bool_or(terminated OR truncated), false) AS is_ended
        FROM steps WHERE task_id = ?
        GROUP BY trajectory_id ORDER BY success NULLS LAST, trajectory_id
    """
    return answer(store, sql, [task_id], run_id=run_id, iteration=iteration)


def places_of(
    store: Store, *, run_id: str, iteration: None, trajectory_id: str, number: int | None
) -> pa.Table:
    """Return where a run has a trajectory, the last iteration first.

    Returns:
        `iteration, task`.
    """
    sql = """
        SELECT iteration, any_value(task_id) AS task FROM steps
        WHERE trajectory_id = $1 AND ($2 IS NULL OR iteration = $2)
        GROUP BY iteration ORDER BY iteration DESC
    """
    return answer(store, sql, [trajectory_id, number], run_id=run_id, iteration=iteration)


def steps(store: Store, *, run_id: str, iteration: int, trajectory_id: str) -> pa.Table:
    """Return the steps of a trajectory in order, with every column of steps and of credit."""
    # Filter each side before the join, so that neither is read completely.
    sql = """
        SELECT own.*, given.* EXCLUDE (run_id, iteration, trajectory_id, step_index)
        FROM (FROM steps WHERE trajectory_id = $1) AS own
        LEFT JOIN (FROM credit WHERE trajectory_id = $1) AS given USING (step_index)
        ORDER BY step_index
    """
    return answer(store, sql, [trajectory_id], run_id=run_id, iteration=iteration)


def pictures(
    store: Store, *, run_id: str, iteration: int, trajectory_id: str, step_index: int
) -> list[dict[str, Any]]:
    """Return the images of a step as they were logged: their bytes, or the paths of files."""
    sql = """
        SELECT images FROM step_images
        WHERE trajectory_id = $1 AND step_index = $2 AND images IS NOT NULL
        LIMIT 1
    """
    rows = answer(store, sql, [trajectory_id, step_index], run_id=run_id, iteration=iteration)
    return rows["images"][0].as_py() if rows.num_rows else []


def steps_of_task(store: Store, *, run_id: str, iteration: int, task_id: str) -> pa.Table:
    """Return the steps of all trajectories of a task, as `steps` does, by trajectory."""
    sql = """
        WITH own AS MATERIALIZED (FROM steps WHERE task_id = $1)
        SELECT own.*, given.* EXCLUDE (run_id, iteration, trajectory_id, step_index)
        FROM own
        LEFT JOIN (FROM credit SEMI JOIN own USING (trajectory_id)) AS given
            USING (trajectory_id, step_index)
        ORDER BY trajectory_id, step_index
    """
    return answer(store, sql, [task_id], run_id=run_id, iteration=iteration)


def outcomes_here(
    store: Store, *, run_id: str, iteration: int, task_id: str, state_id: int, estimator: str
) -> pa.Table:
    """Return each action that a group took in one state and each state it led to, with all steps.

    Returns:
        `action, next_state_id, num_steps, num_trajectories, num_succeeded, advantage, next_state,
        is_goal, num_here`: success is counted by trajectories, and null if nothing says who won,
        the advantage is the mean, null if no step has one, the text is that of the first such
        step, and `num_here` are all trajectories with a step from the state. The best advantage is
        first.
    """
    sql = f"""
        WITH own AS (
            SELECT *, bool_or(success) OVER (PARTITION BY trajectory_id) AS has_succeeded
            FROM steps WHERE task_id = $1
        ),
        here AS (FROM own JOIN credit USING (trajectory_id, step_index) WHERE state_id = $2)
        SELECT
            action, next_state_id, count(*) AS num_steps,
            count(DISTINCT trajectory_id) AS num_trajectories,
            if(count(has_succeeded) > 0, count(DISTINCT trajectory_id) FILTER (has_succeeded), NULL)
                AS num_succeeded,
            avg({column(estimator, "advantage")}::DOUBLE) AS advantage,
            arg_min(next_state, struct_pack(trajectory_id, step_index)) AS next_state,
            bool_or(coalesce(success, false)) AS is_goal,
            (SELECT count(DISTINCT trajectory_id) FROM here) AS num_here
        FROM here
        GROUP BY action, next_state_id
        ORDER BY advantage DESC NULLS LAST, action, next_state_id
    """
    return answer(store, sql, [task_id, state_id], run_id=run_id, iteration=iteration)
