"""SQL of one estimator's advantages by trajectory: from a summary, or else from all steps."""

from collections.abc import Sequence

from graphcredit.store.schema import BARS_PER_SIDE
from graphcredit.store.sql.views import quoted
from graphcredit.viewer.queries.estimators import column

_BARS = range(-BARS_PER_SIDE, BARS_PER_SIDE + 1)


def by_trajectory(estimator: str, others: Sequence[str], *, has_summary: bool) -> str:
    """Return SQL with one row per credited trajectory of an iteration.

    Its columns are `task_id, trajectory_id, num_counted, num_alone, num_disagreeing,
    num_advantages, total, squares, most, least, scale, bars`: `num_counted` steps have credit, and
    the rest is as in a summary. `num_disagreeing` is null with one estimator.
    """
    return _summed(estimator, others) if has_summary else _counted(estimator, others)


def histograms(counted: str) -> str:
    """Return SQL with `task_id, advantages`: the histogram of each task, at one scale for all.

    Scales are powers of two, so each bar of a smaller one is within one of the greatest.
    """
    sums = ", ".join(f"sum(bars[{place + 1}])" for place in range(len(_BARS)))
    bars = ", ".join(f"coalesce(found[{bar}], 0)" for bar in _BARS)
    return f"""
        WITH scaled AS (
            SELECT task_id, scale, [{sums}] AS bars FROM {counted} GROUP BY task_id, scale
        ),
        bar AS (
            SELECT
                task_id, scale / nullif((SELECT max(scale) FROM scaled), 0) AS share,
                unnest(range({_BARS.start}, {_BARS.stop})) AS number, unnest(bars) AS steps
            FROM scaled
        ),
        widened AS (
            SELECT
                task_id, coalesce(sign(number) * ceil(abs(number) * share), 0)::INTEGER AS bar,
                sum(steps)::BIGINT AS steps
            FROM bar WHERE steps > 0 GROUP BY ALL
        ),
        mapped AS (
            SELECT task_id, map(list(bar), list(steps)) AS found FROM widened GROUP BY task_id
        )
        SELECT task_id, [{bars}] AS advantages FROM mapped
    """


def disagrees(estimators: Sequence[str]) -> str:
    """Return an SQL condition: one estimator credits a step, and another one blames it.

    An equivalent with `least` and `greatest` takes three times as long.
    """
    values = [f"coalesce({column(name, 'advantage')}, 0)" for name in estimators]
    blamed, credited = (" OR ".join(f"{value} {sign} 0" for value in values) for sign in "<>")
    return f"({blamed}) AND ({credited})"


def _summed(estimator: str, others: Sequence[str]) -> str:
    disagreeing = "num_disagreeing" if len(others) > 1 else "NULL::INTEGER"
    return f"""
        SELECT
            task_id, trajectory_id, played.num_steps AS num_counted, num_alone,
            {disagreeing} AS num_disagreeing, summed.num_steps AS num_advantages,
            total, squares, most, least, scale, bars
        FROM summary_advantages AS summed
        JOIN summary_trajectories AS played USING (trajectory_id)
        WHERE estimator = {quoted(estimator)}
    """


def _counted(estimator: str, others: Sequence[str]) -> str:
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
                    sign({advantage}) * ceil(abs({advantage}) * {BARS_PER_SIDE} / (FROM widest)), 0
                )::TINYINT END AS bar
            FROM credit WHERE state_id IS NOT NULL
        ),
        counted AS (
            SELECT
                trajectory_id, count(*) AS num_counted,
                count_if(state_group_size = 1) AS num_alone, {disagreeing} AS num_disagreeing,
                count(advantage) AS num_advantages,
                sum(advantage) AS total, sum(advantage * advantage) AS squares,
                max(advantage)::FLOAT AS most, min(advantage)::FLOAT AS least,
                coalesce((FROM widest), 0) AS scale, [{bars}] AS bars
            FROM step GROUP BY trajectory_id
        )
        SELECT task_id, counted.* FROM counted JOIN trajectory USING (trajectory_id)
    """
