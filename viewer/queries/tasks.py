"""A query with one row per group of an iteration, and measures of how informative its credit is."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import column
from graphcredit.viewer.queries.rollouts import GROUPS, TRAJECTORIES
from graphcredit.viewer.queries.views import answer

NUM_BINS = 9
"""Bars of the histogram of advantages; the middle one is around zero."""

OUT_OF_DATE = "credit out of date"

_SUCCESS = pc.field("success_rate")
KINDS = {
    "all": None,
    "mixed outcomes": (_SUCCESS > 0) & (_SUCCESS < 1),
    "never solved": _SUCCESS == 0,
    "always solved": _SUCCESS == 1,
    "degenerate": pc.field("is_degenerate"),
    OUT_OF_DATE: pc.field("num_credited") < pc.field("num_trajectories"),
}
"""Kinds of groups: title to condition on the rows of `task_facts`."""


def task_facts(
    store: Store, *, run_id: str, iteration: int, estimator: str | None, others: Sequence[str] = ()
) -> pa.Table:
    """Return one row per group, those with the widest spread of advantages first.

    Without credit, the columns that need it are null. Among the columns:

    - num_credited: complete trajectories with credit; those recorded after it have none.
    - num_states: states, the goal among them.
    - num_merges: texts that were merged into another's state.
    - singleton_share: share of the credited steps whose state no other step of the group starts at.
    - advantage_spread: standard deviation of the estimator's advantages over the group's steps.
    - disagreement: share of the credited steps at which two estimators have opposite signs; null
      with one estimator.
    - advantages: histogram of the advantages, with `NUM_BINS` equal bins from -m to m, where m is
      the greatest absolute advantage of the iteration.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        estimator: The estimator of the advantages; None for an iteration without credit.
        others: All estimators, for the disagreement.

    Raises:
        SchemaError: A shard cannot be read.
    """
    credit = _NO_CREDIT if estimator is None else _credit(estimator, others)
    sql = f"""
        WITH {GROUPS}, {credit},
        graph AS (
            SELECT
                task_id, count(*) AS num_states,
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
    return answer(store, sql, run_id=run_id, iteration=iteration, tables=TRAJECTORIES)


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
    """Return clauses that end with `credited`; steps are first counted by trajectory."""
    advantage = f"{column(estimator, 'advantage')}::DOUBLE"
    disagreeing = f"count_if({disagrees(others)})" if len(others) > 1 else "NULL::BIGINT"
    numbers = range(NUM_BINS)
    counts = ", ".join(f"count_if(bar = {number}) AS bar{number}" for number in numbers)
    bars = ", ".join(f"sum(bar{number})" for number in numbers)
    return f"""
        widest AS (
            SELECT nullif(max(abs({advantage})), 0) AS widest FROM credit WHERE state_id IS NOT NULL
        ),
        step AS (
            SELECT
                *, {advantage} AS advantage,
                CASE WHEN {advantage} IS NOT NULL THEN least({NUM_BINS - 1}, floor(
                    (coalesce({advantage} / (FROM widest), 0) / 2 + 0.5) * {NUM_BINS}
                ))::UTINYINT END AS bar
            FROM credit WHERE state_id IS NOT NULL
        ),
        counted AS (
            SELECT
                trajectory_id,
                count(*) AS num_counted,
                count_if(state_group_size = 1) AS num_alone,
                count(advantage) AS num_advantages,
                sum(advantage) AS total,
                sum(advantage * advantage) AS squares,
                {disagreeing} AS num_disagreeing,
                {counts}
            FROM step GROUP BY trajectory_id
        ),
        credited AS (
            SELECT
                task_id,
                sum(num_alone) / sum(num_counted) AS singleton_share,
                sqrt(greatest(0, sum(squares) / nullif(sum(num_advantages), 0)
                    - (sum(total) / nullif(sum(num_advantages), 0)) ** 2)) AS advantage_spread,
                sum(num_disagreeing) / sum(num_counted) AS disagreement,
                [{bars}]::BIGINT[] AS advantages
            FROM counted JOIN trajectory USING (trajectory_id) GROUP BY task_id
        )
    """


def disagrees(estimators: Sequence[str]) -> str:
    """Return an SQL condition: one estimator credits a step, and another one blames it.

    An equivalent with `least` and `greatest` takes three times as long.
    """
    values = [f"coalesce({column(name, 'advantage')}, 0)" for name in estimators]
    blamed, credited = (" OR ".join(f"{value} {sign} 0" for value in values) for sign in "<>")
    return f"({blamed}) AND ({credited})"
