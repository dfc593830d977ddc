"""How well credit follows the truth, for stores whose environment knows the distance to the goal.

The truth of a step is `oracle_distance - next_oracle_distance`: how much nearer it led. It judges
credit; no estimator reads it.
"""

import math
from dataclasses import dataclass
from typing import Any

import duckdb

_JUDGED = """
    SELECT oracle_distance - next_oracle_distance AS progress, won, {columns}
    FROM enriched JOIN (
        SELECT run_id, iteration, trajectory_id, success AS won
        FROM trajectories WHERE is_complete
    ) USING (run_id, iteration, trajectory_id)
    WHERE progress IS NOT NULL
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepShares:
    """What steps did, by how their trajectory ended."""

    num_failed_steps: int
    """Judged steps of failed trajectories."""
    num_failed_progress: int
    """Those among them that led nearer to the goal."""
    num_successful_steps: int
    """Judged steps of successful trajectories."""
    num_successful_idle: int
    """Those among them that did not lead nearer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankCorrelation:
    """Spearman's correlation of a credit column with the progress of each step."""

    column: str
    """The credit column."""
    over_all: float | None
    """Over all judged steps; None where one side does not vary."""
    over_failed: float | None
    """Over the steps of failed trajectories alone."""


def step_shares(connection: duckdb.DuckDBPyConnection) -> StepShares:
    """Count progress in failed trajectories and idleness in successful ones.

    Args:
        connection: With the views of one store, from `catalog.connect`.
    """
    counts = _row(
        connection,
        f"""
        SELECT count_if(NOT won), count_if(NOT won AND progress > 0),
               count_if(won), count_if(won AND progress <= 0)
        FROM ({_JUDGED.format(columns="1")})
        """,
    )
    return StepShares(
        num_failed_steps=counts[0],
        num_failed_progress=counts[1],
        num_successful_steps=counts[2],
        num_successful_idle=counts[3],
    )


def rank_correlation(connection: duckdb.DuckDBPyConnection, column: str) -> RankCorrelation:
    """Return Spearman's correlation (average ranks for ties) of a credit column with progress.

    Args:
        connection: With the views of one store, from `catalog.connect`.
        column: A float column of `credit`; steps where it is null do not count.
    """
    over_all, over_failed = (
        _row(
            connection,
            f"""
            WITH judged AS (
                SELECT progress, "{column}" AS credit
                FROM ({_JUDGED.format(columns=f'"{column}"')})
                WHERE credit IS NOT NULL AND ({who})
            ), ranked AS (
                SELECT
                    rank() OVER (ORDER BY progress)
                        + (count(*) OVER (PARTITION BY progress) - 1) / 2 AS progress_rank,
                    rank() OVER (ORDER BY credit)
                        + (count(*) OVER (PARTITION BY credit) - 1) / 2 AS credit_rank
                FROM judged
            )
            SELECT corr(progress_rank, credit_rank) FROM ranked
            """,
        )[0]
        for who in ("true", "NOT won")
    )
    return RankCorrelation(
        column=column, over_all=_number(over_all), over_failed=_number(over_failed)
    )


def _row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    (row,) = connection.execute(sql).fetchall()
    return row


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
