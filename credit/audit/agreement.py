"""Agreement of credit with the truth, in stores whose environment knows the distance to the goal.

The truth of a step is its progress, `oracle_distance - next_oracle_distance`: how much nearer it
led. It judges credit; no estimator reads it. Judged are the steps of complete trajectories that
have both distances: a step that loses a game has none.

Credit is relative to its group, so each group is judged by itself, and the groups are averaged:
each counts once. `Agreement` defines the numbers; the audit, the demo and
`experiments/credit_quality` report these and no others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import duckdb

from graphcredit.store.sql.views import identifier

PROGRESS = "oracle_distance - next_oracle_distance"
"""SQL of the truth of a step: how much nearer it led."""

_JUDGED = f"""
    SELECT run_id, iteration, task_id, won, {PROGRESS} AS progress, {{credit}} AS credit
    FROM enriched JOIN (
        SELECT run_id, iteration, trajectory_id, success AS won
        FROM trajectories WHERE is_complete
    ) USING (run_id, iteration, trajectory_id)
    WHERE isfinite(progress)
"""

_RANK = """rank() OVER (PARTITION BY {group}, failed_only ORDER BY {name})
            + (count(*) OVER (PARTITION BY {group}, failed_only, {name}) - 1) / 2"""
"""Ties share their mean rank."""

_GROUP = "run_id, iteration, task_id"

_AGREEMENT = f"""
    WITH counted AS (
        SELECT *, unnest(CASE WHEN won THEN [false] ELSE [false, true] END) AS failed_only
        FROM ({_JUDGED}) WHERE credit IS NOT NULL
    ), ranked AS (
        SELECT *,
            {_RANK.format(group=_GROUP, name="progress")} AS progress_rank,
            {_RANK.format(group=_GROUP, name="credit")} AS credit_rank
        FROM counted
    ), found AS (
        SELECT {_GROUP}, failed_only, count(*) AS num_steps,
            CASE WHEN min(progress) = max(progress) THEN NULL
                WHEN min(credit) = max(credit) THEN 0
                ELSE corr(progress_rank, credit_rank ORDER BY progress_rank, credit_rank)
                END AS correlation,
            avg((sign(credit) = sign(progress))::INT) FILTER (progress <> 0) AS agreement,
            avg((credit = 0)::INT) AS silent_share
        FROM ranked GROUP BY {_GROUP}, failed_only
    )
    SELECT {_GROUP}, every.num_steps, coalesce(failed.num_steps, 0),
        every.correlation, failed.correlation, every.agreement, every.silent_share
    FROM (FROM found WHERE NOT failed_only) AS every
    LEFT JOIN (FROM found WHERE failed_only) AS failed USING ({_GROUP})
    ORDER BY {_GROUP}
"""
"""Steps of failures are counted twice: among all steps, and among their own. The order in which the
correlation adds up is fixed, so that the same store always gives the same bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How a credit column follows the progress of the steps of one group."""

    run_id: str
    iteration: int
    task_id: str
    num_steps: int
    """Judged steps that have credit."""
    num_failed_steps: int
    """Those of failed trajectories among them."""
    over_all: float | None
    """Spearman's rank correlation over the judged steps, ties sharing their mean rank. 0 where the
    credit does not vary: it ranks nothing. None where the progress does not: it judges nothing."""
    over_failed: float | None
    """The same over the steps of failed trajectories alone; None also where there are none."""
    sign_agreement: float | None
    """Among steps with progress above or below 0, the share whose credit has the sign of the
    progress: no credit never agrees. None where there is no such step."""
    silent_share: float
    """Share of steps whose credit is exactly 0: no signal."""


_FIELDS = tuple(field.name for field in fields(Agreement))


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanAgreement:
    """The mean of each number over the groups in which it is defined, and how many these are."""

    num_groups: int
    num_ranked: int
    """Groups with a rank correlation over all steps."""
    num_ranked_failed: int
    """Groups with a rank correlation over the steps of failures."""
    over_all: float | None
    over_failed: float | None
    sign_agreement: float | None
    silent_share: float | None

    @classmethod
    def of(cls, agreements: Sequence[Agreement]) -> "MeanAgreement":
        """Average over groups; None where no group has a number."""
        return cls(
            num_groups=len(agreements),
            num_ranked=sum(group.over_all is not None for group in agreements),
            num_ranked_failed=sum(group.over_failed is not None for group in agreements),
            over_all=_mean(group.over_all for group in agreements),
            over_failed=_mean(group.over_failed for group in agreements),
            sign_agreement=_mean(group.sign_agreement for group in agreements),
            silent_share=_mean(group.silent_share for group in agreements),
        )


def agreements(connection: duckdb.DuckDBPyConnection, column: str) -> list[Agreement]:
    """Judge a credit column in each group by itself.

    Args:
        connection: With the views of one store, from `catalog.connect`.
        column: A float column of `credit`; steps where it is null do not count.

    Returns:
        One for each group that has a judged step, by run, iteration and task.
    """
    rows = connection.execute(_AGREEMENT.format(credit=identifier(column))).fetchall()
    return [Agreement(**dict(zip(_FIELDS, row, strict=True))) for row in rows]


def mean_agreement(connection: duckdb.DuckDBPyConnection, column: str) -> MeanAgreement:
    """Judge a credit column: the mean over all groups; see `agreements`."""
    return MeanAgreement.of(agreements(connection, column))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
