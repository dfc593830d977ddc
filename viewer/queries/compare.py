"""Queries that compare two estimators step by step.

Advantages are divided by their standard deviation, so that estimators of different scales can be
compared.
"""

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import column
from graphcredit.viewer.queries.telling import TELLING
from graphcredit.viewer.queries.truth import PROGRESS
from graphcredit.viewer.queries.views import answer


def agreement(store: Store, *, run_id: str, iteration: int, left: str, right: str) -> pa.Table:
    """Return the agreement of two estimators, over all tasks and for each.

    Returns:
        `task_id, num_steps, correlation, flip_share`; the last is the share of steps with opposite
        signs. The first row is about all tasks; its task_id is null. Then tasks by flip_share,
        descending, and last those without a step that tells something, see `queries.telling`.
    """
    sql = f"""
        {_scaled(left, right)}
        SELECT
            task_id, count(*)::INTEGER AS num_steps,
            CASE WHEN isfinite(corr(a, b)) THEN corr(a, b) END AS correlation,
            avg((a * b < 0)::INTEGER) AS flip_share
        FROM scaled GROUP BY GROUPING SETS ((), (task_id))
        HAVING count(*) > 0
        ORDER BY task_id IS NOT NULL, count(*) FILTER (is_telling) = 0, flip_share DESC,
            correlation, task_id
    """
    return answer(store, sql, run_id=run_id, iteration=iteration, tables=TELLING)


def truth_agreement(
    store: Store, *, run_id: str, iteration: int, left: str, right: str
) -> pa.Table:
    """Return how often the two estimators' advantages have the sign of the true progress.

    Returns:
        `num_left, agreeing_left, num_right, agreeing_right`, one row: steps of which an advantage
        and the progress are known and not 0, and those where the signs agree.
    """
    a, b = column(left, "advantage"), column(right, "advantage")
    sql = f"""
        WITH judged AS (
            SELECT sign({a}) AS a, sign({b}) AS b, sign({PROGRESS}) AS progress
            FROM steps JOIN credit USING (trajectory_id, step_index)
            WHERE isfinite({PROGRESS}) AND {PROGRESS} <> 0
        )
        SELECT
            count_if(a <> 0) AS num_left, count_if(a = progress) AS agreeing_left,
            count_if(b <> 0) AS num_right, count_if(b = progress) AS agreeing_right
        FROM judged
    """
    return answer(store, sql, run_id=run_id, iteration=iteration)


def differing_steps(
    store: Store,
    *,
    run_id: str,
    iteration: int,
    left: str,
    right: str,
    only_flips: bool,
    num_rows: int,
) -> pa.Table:
    """Return the steps on which two estimators differ most, in standard deviations of each.

    Those that tell something come first, see `queries.telling`.

    Returns:
        `task_id, trajectory_id, step_index, action, left, right, is_flip, difference,
        oracle_distance, next_oracle_distance`.
    """
    wanted = "a * b < 0" if only_flips else "true"
    sql = f"""
        {_scaled(left, right)},
        most AS (
            SELECT *, abs(x - y) AS difference FROM scaled WHERE {wanted} AND x <> y
            ORDER BY is_telling DESC, difference DESC, trajectory_id, step_index LIMIT {num_rows}
        )
        SELECT
            most.task_id, trajectory_id, step_index, action,
            a AS "left", b AS "right", a * b < 0 AS is_flip, difference,
            oracle_distance, next_oracle_distance
        FROM most JOIN steps USING (trajectory_id, step_index)
        ORDER BY is_telling DESC, difference DESC, trajectory_id, step_index
    """
    return answer(store, sql, run_id=run_id, iteration=iteration, tables=TELLING)


def _scaled(left: str, right: str) -> str:
    """Return SQL of a WITH whose last table `scaled` has advantages a, b and scaled ones x, y."""
    a, b = column(left, "advantage"), column(right, "advantage")
    return f"""
        WITH owner AS (SELECT trajectory_id, any_value(task_id) AS task_id FROM steps GROUP BY ALL),
        pair AS (
            SELECT trajectory_id, step_index, {a}::DOUBLE AS a, {b}::DOUBLE AS b FROM credit
            WHERE {a} IS NOT NULL AND {b} IS NOT NULL
        ),
        scale AS (
            SELECT
                coalesce(nullif(stddev_pop(a), 0), 1) AS scale_a,
                coalesce(nullif(stddev_pop(b), 0), 1) AS scale_b
            FROM pair
        ),
        scaled AS (
            SELECT task_id, trajectory_id, step_index, a, b, a / scale_a AS x, b / scale_b AS y,
                (trajectory_id, step_index) IN (FROM telling) AS is_telling
            FROM pair JOIN owner USING (trajectory_id), scale
        )
    """
