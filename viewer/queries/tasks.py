"""The groups of an iteration, each with the facts that tell whether its credit says anything."""

from collections.abc import Sequence

import pyarrow as pa

from graphcredit.store.catalog import run_trusted_query
from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import column
from graphcredit.viewer.queries.iterations import GROUPS, TRAJECTORIES

NUM_BINS = 9
"""Bars of the histogram of advantages; the middle one is around zero."""


def task_facts(
    store: Store, *, run_id: str, iteration: int, estimator: str | None, others: Sequence[str] = ()
) -> pa.Table:
    """Return one row per group, those with the widest spread of advantages first.

    Without credit, the columns that need it are null. Among the columns:

    - num_states: states without the goal; num_merges: texts that were merged into another's state.
    - singleton_share: share of the credited steps whose state no other step of the group starts at.
    - advantage_spread: standard deviation of the estimator's advantages over the group's steps.
    - disagreement: share of the credited steps at which two estimators have opposite signs; null
      with one estimator.
    - advantages: how many steps have an advantage in each of `NUM_BINS` equal parts of the range
      from -m to m, where m is the greatest absolute advantage of the iteration.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        estimator: Whose advantages; None for an iteration without credit.
        others: All estimators, for the disagreement.

    Raises:
        SchemaError: A shard cannot be read.
    """
    credit = _NO_CREDIT if estimator is None else _credit(estimator, others)
    sql = f"""
        WITH trajectory AS ({TRAJECTORIES}), grouped AS ({GROUPS}), {credit},
        graph AS (
            SELECT
                task_id, count_if(NOT is_goal)::BIGINT AS num_states,
                sum(num_merged - 1) FILTER (num_merged > 1)::BIGINT AS num_merges
            FROM nodes GROUP BY task_id
        )
        SELECT
            grouped.* EXCLUDE (iteration), num_states,
            CASE WHEN num_states IS NOT NULL THEN coalesce(num_merges, 0) END AS num_merges,
            credited.* EXCLUDE (task_id)
        FROM grouped LEFT JOIN graph USING (task_id) LEFT JOIN credited USING (task_id)
        ORDER BY advantage_spread DESC NULLS LAST, task_id
    """
    return run_trusted_query(store, sql, run_id=run_id, iteration=iteration).table


_NO_CREDIT = """
    credited AS (
        SELECT
            NULL::VARCHAR AS task_id, NULL::DOUBLE AS singleton_share,
            NULL::DOUBLE AS advantage_spread, NULL::DOUBLE AS disagreement,
            NULL::BIGINT[] AS advantages
        WHERE false
    )
"""


def _credit(estimator: str, others: Sequence[str]) -> str:
    advantage = column(estimator, "advantage")
    signs = ", ".join(column(name, "advantage") for name in others)
    disagrees = f"least({signs}) < 0 AND greatest({signs}) > 0" if len(others) > 1 else "NULL"
    bins = ", ".join(f"count_if(bin = {number})" for number in range(NUM_BINS))
    return f"""
        step AS (
            SELECT
                task_id, state_group_size, {advantage} AS advantage, {disagrees} AS disagrees,
                max(abs({advantage})) OVER () AS widest
            FROM credit JOIN trajectory USING (iteration, trajectory_id)
            WHERE state_id IS NOT NULL
        ),
        binned AS (
            SELECT
                *, least({NUM_BINS - 1}, floor(
                    CASE WHEN widest > 0 THEN advantage / widest / 2 + 0.5 ELSE 0.5 END * {NUM_BINS}
                )) AS bin
            FROM step
        ),
        credited AS (
            SELECT
                task_id,
                avg((state_group_size = 1)::INTEGER) AS singleton_share,
                stddev_pop(advantage) AS advantage_spread,
                avg(disagrees::INTEGER) AS disagreement,
                [{bins}]::BIGINT[] AS advantages
            FROM binned GROUP BY task_id
        )
    """
