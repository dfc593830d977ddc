"""A query with one row per group of an iteration, and measures of how informative its credit is."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.estimators import column
from graphcredit.viewer.queries.rollouts import GROUPS
from graphcredit.viewer.queries.views import answer

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


def tasks_of_kind(facts: pa.Table, kind: str, text: str = "") -> pa.Table:
    """Return the rows of `task_facts` of one of the `KINDS`, with a text in name or instruction."""
    condition = KINDS[kind]
    rows = facts if condition is None else facts.filter(condition)
    wanted = pc.match_substring(rows["task_id"], text, ignore_case=True)
    if "instruction" in rows.column_names:
        asked = pc.match_substring(rows["instruction"], text, ignore_case=True)
        wanted = pc.or_(wanted, pc.fill_null(asked, fill_value=False))
    return rows.filter(wanted)


def task_facts(
    store: Store, *, run_id: str, iteration: int, estimator: str | None, others: Sequence[str] = ()
) -> pa.Table:
    """Return one row per group, those with the widest spread of advantages first.

    Without credit, the columns that need it are null. Among the columns:

    - num_credited: complete trajectories with credit; those recorded after it have none.
    - num_states: states, the goal among them.
    - num_merges: texts that were merged into another's state; the goal has many by its nature.
    - singleton_share: share of the credited steps whose state no other step of the group starts at.
    - advantage_spread: standard deviation of the estimator's advantages over the group's steps.
    - disagreement: share of the credited steps at which two estimators have opposite signs; null
      with one estimator.
    - advantages: histogram of the advantages, with 17 bars from -m to m, where m is the least
      power of two that no advantage of the iteration exceeds; the middle one is of those
      that are 0.
    """
    credit = _NO_CREDIT if estimator is None else _credit(estimator, others)
    return answer(store, _groups(credit), run_id=run_id, iteration=iteration, tables=_TABLES)


def _groups(credit: str) -> str:
    """Return SQL of all columns, given clauses that end with `credited`."""
    return f"""
        WITH {credit}
        SELECT
            grouped.* EXCLUDE (iteration), num_states,
            CASE WHEN num_states IS NOT NULL THEN coalesce(num_merges, 0) END AS num_merges,
            credited.* EXCLUDE (task_id)
        FROM grouped LEFT JOIN graph USING (task_id) LEFT JOIN credited USING (task_id)
        ORDER BY advantage_spread DESC NULLS LAST, task_id
    """


_GRAPH = """
    SELECT
        task_id, count(*) AS num_states,
        sum(num_merged - 1) FILTER (num_merged > 1 AND NOT is_goal)::BIGINT AS num_merges
    FROM nodes GROUP BY task_id
"""
_TABLES = GROUPS | {"graph": _GRAPH}
"""What is the same for each estimator."""

_NO_CREDIT = """
    credited AS (
        SELECT
            NULL::VARCHAR AS task_id, NULL::DOUBLE AS singleton_share,
            NULL::DOUBLE AS advantage_spread, NULL::DOUBLE AS disagreement,
            NULL::BIGINT[] AS advantages
        WHERE false
    )
"""


_BARS_PER_SIDE = 8
"""Bars of a histogram of advantages below zero, and as many above it; between them is one of those
that are zero. Bar i above zero has the advantages in (i - 1, i] / `_BARS_PER_SIDE` of its scale."""


def _credit(estimator: str, others: Sequence[str]) -> str:
    """Return clauses that end with `credited`."""
    advantage = f"{column(estimator, 'advantage')}::DOUBLE"
    disagreement = f"avg(({_disagrees(others)})::INT)" if len(others) > 1 else "NULL::DOUBLE"
    sides = range(-_BARS_PER_SIDE, _BARS_PER_SIDE + 1)
    bars = ", ".join(f"count_if(bar = {bar})::BIGINT" for bar in sides)
    return f"""
        widest AS (
            SELECT 2.0 ** ceil(log2(nullif(max(abs({advantage})), 0))) AS widest
            FROM credit WHERE state_id IS NOT NULL
        ),
        step AS (
            SELECT
                *, {advantage} AS advantage,
                CASE WHEN {advantage} IS NOT NULL THEN coalesce(
                    sign({advantage}) * ceil(abs({advantage}) * {_BARS_PER_SIDE} / (FROM widest)), 0
                )::TINYINT END AS bar
            FROM credit WHERE state_id IS NOT NULL
        ),
        credited AS (
            SELECT
                task_id, avg((state_group_size = 1)::INT) AS singleton_share,
                stddev_pop(advantage) AS advantage_spread,
                {disagreement} AS disagreement, [{bars}] AS advantages
            FROM step JOIN trajectory USING (trajectory_id) GROUP BY task_id
        )
    """


def _disagrees(estimators: Sequence[str]) -> str:
    """Return an SQL condition: one estimator credits a step, and another one blames it.

    An equivalent with `least` and `greatest` takes three times as long.
    """
    values = [f"coalesce({column(name, 'advantage')}, 0)" for name in estimators]
    blamed, credited = (" OR ".join(f"{value} {sign} 0" for value in values) for sign in "<>")
    return f"({blamed}) AND ({credited})"
