"""Queries for the details of a task's graph: its steps, and the texts of its states."""

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.store.schema import split_estimator_column
from graphcredit.viewer.queries.estimators import column
from graphcredit.viewer.queries.telling import telling
from graphcredit.viewer.queries.views import answer, columns


def graph_tasks(store: Store, *, run_id: str, iteration: int) -> list[str]:
    """Return the tasks of an iteration that have a graph, sorted."""
    sql = "SELECT DISTINCT task_id FROM nodes ORDER BY task_id"
    return answer(store, sql, run_id=run_id, iteration=iteration)["task_id"].to_pylist()


def task_steps(store: Store, *, run_id: str, iteration: int, task_id: str) -> pa.Table:
    """Return the credited steps of a task in order, without their texts.

    Columns: `trajectory_id, step_index, state_id, next_state_id, action, is_action_valid, reward,
    succeeded` (of the trajectory), `oracle_distance, next_oracle_distance, is_telling` (whether it
    may head a list, see `queries.telling`), then every `<estimator>_<part>` there is.
    """
    credit_columns = columns(store, "credit", run_id=run_id, iteration=iteration)
    credit = "".join(
        f", {column(*parts)}" for parts in map(split_estimator_column, credit_columns) if parts
    )
    sql = f"""
        WITH step AS (
            SELECT trajectory_id, step_index, action, is_action_valid, reward, success,
                oracle_distance, next_oracle_distance
            FROM steps WHERE task_id = $1
        ),
        told AS MATERIALIZED ({telling("task_id = $1")}),
        ended AS (
            SELECT trajectory_id, bool_or(success) AS succeeded FROM step GROUP BY trajectory_id
        )
        SELECT
            trajectory_id, step_index, state_id, next_state_id, action, is_action_valid,
            reward, succeeded, oracle_distance, next_oracle_distance,
            (trajectory_id, step_index) IN (FROM told) AS is_telling{credit}
        FROM step JOIN credit USING (trajectory_id, step_index) JOIN ended USING (trajectory_id)
        WHERE state_id IS NOT NULL
        ORDER BY trajectory_id, step_index
    """
    return answer(store, sql, [task_id], run_id=run_id, iteration=iteration)


def state_texts(
    store: Store, *, run_id: str, iteration: int, task_id: str, state_id: int
) -> dict[str, int]:
    """Return the texts of a state, the most visited one first, and how often each was seen."""
    sql = """
        WITH step AS (
            SELECT trajectory_id, step_index, state, next_state, success
            FROM steps WHERE task_id = $1
        ),
        visit AS (
            SELECT state AS text FROM step JOIN credit USING (trajectory_id, step_index)
            WHERE state_id = $2
            UNION ALL
            SELECT next_state FROM step JOIN credit USING (trajectory_id, step_index)
            WHERE next_state_id = $2 AND success IS NOT NULL
        )
        SELECT text, count(*) AS visits FROM visit GROUP BY text ORDER BY visits DESC, text
    """
    texts = answer(store, sql, [task_id, state_id], run_id=run_id, iteration=iteration)
    return {row["text"]: row["visits"] for row in texts.to_pylist()}
