"""SQL of one estimator's advantages by trajectory."""

from collections.abc import Sequence

from graphcredit.viewer.queries.estimators import column

_BARS_PER_SIDE = 8
"""Bars of a histogram of advantages below zero, and as many above it; between them is one of those
that are zero. Bar i above zero has the advantages in (i - 1, i] / `_BARS_PER_SIDE` of its scale."""

_BARS = range(-_BARS_PER_SIDE, _BARS_PER_SIDE + 1)


def by_trajectory(estimator: str, others: Sequence[str]) -> str:
    """Return SQL with one row per credited trajectory of an iteration.

    Its columns are `task_id, trajectory_id, num_counted, num_alone, num_disagreeing,
    num_advantages, total, squares, most, least, bars`: `num_counted` steps have credit, `num_alone`
    of them are the only ones from their state, `num_disagreeing` are credited by one estimator and
    blamed by another (null with one estimator), and `num_advantages` have an advantage. `bars` is
    its histogram, at one scale for all: the least power of two that no advantage exceeds.
    """
    advantage = f"{column(estimator, 'advantage')}::DOUBLE"
    disagreeing = f"count_if({disagrees(others)})" if len(others) > 1 else "NULL::BIGINT"
    bars = ", ".join(f"count_if(bar = {bar})" for bar in _BARS)
    return f"""
        WITH widest AS (
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
        counted AS (
            SELECT
                trajectory_id, count(*) AS num_counted,
                count_if(state_group_size = 1) AS num_alone, {disagreeing} AS num_disagreeing,
                count(advantage) AS num_advantages,
                sum(advantage) AS total, sum(advantage * advantage) AS squares,
                max(advantage)::FLOAT AS most, min(advantage)::FLOAT AS least, [{bars}] AS bars
            FROM step GROUP BY trajectory_id
        )
        SELECT task_id, counted.* FROM counted JOIN trajectory USING (trajectory_id)
    """


def summed_bars() -> str:
    """Return an SQL aggregate: the sum of the histograms `bars` of several trajectories."""
    return f"[{', '.join(f'sum(bars[{place + 1}])::BIGINT' for place in range(len(_BARS)))}]"


def disagrees(estimators: Sequence[str]) -> str:
    """Return an SQL condition: one estimator credits a step, and another one blames it.

    An equivalent with `least` and `greatest` takes three times as long.
    """
    values = [f"coalesce({column(name, 'advantage')}, 0)" for name in estimators]
    blamed, credited = (" OR ".join(f"{value} {sign} 0" for value in values) for sign in "<>")
    return f"({blamed}) AND ({credited})"
