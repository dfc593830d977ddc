"""Queries with one row per iteration: rollouts, action entropy, silent steps, training metrics."""

import pyarrow as pa

from graphcredit.store.layout import Store
from graphcredit.store.schema import TRAINING_COLUMNS
from graphcredit.viewer.queries.estimators import column, estimators
from graphcredit.viewer.queries.rollouts import GROUPS
from graphcredit.viewer.queries.views import answer

_ITERATIONS = """
    SELECT
        iteration,
        count_if(num_trajectories > 0)::BIGINT AS num_groups,
        sum(num_trajectories)::BIGINT AS num_trajectories,
        sum(num_credited)::BIGINT AS num_credited,
        sum(num_incomplete)::BIGINT AS num_incomplete,
        sum(success_rate * num_trajectories)
            / sum(num_trajectories) FILTER (success_rate IS NOT NULL) AS success_rate,
        sum(mean_return * num_trajectories) / sum(num_trajectories) AS mean_return,
        sum(mean_length * num_trajectories) / sum(num_trajectories) AS mean_length,
        sum(invalid_share * num_steps) / sum(num_steps) AS invalid_share,
        count_if(is_degenerate) / nullif(count(is_degenerate), 0) AS degenerate_share,
        sum(num_steps)::BIGINT AS num_steps
    FROM grouped GROUP BY iteration ORDER BY iteration
"""

_ENTROPY = """
    WITH choice AS (
        SELECT iteration, hash(task_id, state_id) AS state, sum(visits) AS visits
        FROM edges GROUP BY iteration, state, hash(action)
    ),
    chosen AS (
        SELECT
            iteration, sum(visits) AS visits,
            sum(visits) * ln(sum(visits)) - sum(visits * ln(visits)) AS nats
        FROM choice GROUP BY iteration, state
    )
    SELECT iteration, sum(nats) / sum(visits) AS action_entropy
    FROM chosen GROUP BY iteration ORDER BY iteration
"""
"""Groups states and actions by their hashes: there may be millions, and numbers are faster."""

_METRICS = tuple(c.name for c in TRAINING_COLUMNS if c.name not in ("training", "update", "epoch"))


def iteration_facts(store: Store, *, run_id: str, iteration: int | None = None) -> pa.Table:
    """Return one row per iteration of a run, without the entropy of its actions."""
    return answer(store, _ITERATIONS, run_id=run_id, iteration=iteration, tables=GROUPS)


def action_entropies(store: Store, *, run_id: str, iteration: int | None = None) -> pa.Table:
    """Return `iteration, action_entropy` of the iterations that have credit.

    It is the entropy of the actions taken in a state, in nats, averaged over the states of all
    groups, weighted by visits. It needs credit, which has the states. This query takes longer than
    all of `iteration_facts`.
    """
    return answer(store, _ENTROPY, run_id=run_id, iteration=iteration)


def silent_shares(
    store: Store, *, run_id: str, iteration: int | None = None, estimator: str
) -> pa.Table:
    """Return `iteration, silent_share`: the share of credited steps whose advantage is 0.

    A trainer learns nothing from such steps. Iterations without credit by the estimator are left
    out.
    """
    if estimator not in estimators(store, run_id=run_id, iteration=iteration):
        return _NO_SHARES
    advantage = column(estimator, "advantage")
    sql = f"""
        SELECT iteration, avg(({advantage} = 0)::INTEGER) AS silent_share
        FROM credit WHERE {advantage} IS NOT NULL GROUP BY iteration ORDER BY iteration
    """
    return answer(store, sql, run_id=run_id, iteration=iteration)


_NO_SHARES = pa.table(
    {"iteration": pa.array([], pa.int32()), "silent_share": pa.array([], pa.float64())}
)


def training_facts(store: Store, *, run_id: str, iteration: int | None = None) -> pa.Table:
    """Return the training metrics of a run as `iteration, training, metric, value`.

    A value is the mean over the updates of one training on one iteration. Metrics that none of them
    has are left out.
    """
    means = ", ".join(f'avg("{name}") AS "{name}"' for name in _METRICS)
    sql = f"""
        UNPIVOT (SELECT iteration, training, {means} FROM training GROUP BY iteration, training)
        ON * EXCLUDE (iteration, training) INTO NAME metric VALUE "value"
        ORDER BY metric, training, iteration
    """
    return answer(store, sql, run_id=run_id, iteration=iteration)
