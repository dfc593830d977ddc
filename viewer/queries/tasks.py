"""A query with one row per group of an iteration, and measures of how informative its credit is."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.layout import Store
from graphcredit.viewer.queries.advantages import by_trajectory, summed_bars
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
    credit = _NO_CREDIT if estimator is None else _credit(by_trajectory(estimator, others))
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


def _credit(counted: str) -> str:
    """Return clauses that end with `credited`, given SQL of `by_trajectory`."""
    return f"""
        credited AS (
            SELECT
                task_id,
                sum(num_alone) / sum(num_counted) AS singleton_share,
                sqrt(greatest(0, sum(squares) / nullif(sum(num_advantages), 0)
                    - (sum(total) / nullif(sum(num_advantages), 0)) ** 2)) AS advantage_spread,
                sum(num_disagreeing) / sum(num_counted) AS disagreement,
                {summed_bars()} AS advantages
            FROM ({counted}) GROUP BY task_id
        )
    """
