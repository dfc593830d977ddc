"""How the iterations of a run went, in one row each.

A trajectory counts as complete here when its steps are 0 … T-1 and exactly the last one ends the
episode and has an outcome. Whether each state is the one before's next state is left to `check`:
that alone would read all texts.
"""

import pyarrow as pa

from graphcredit.store.catalog import run_trusted_query
from graphcredit.store.layout import Store
from graphcredit.store.schema import TRAINING_COLUMNS

TRAJECTORIES = """
    SELECT
        iteration, task_id, trajectory_id,
        count(*) AS num_steps,
        count_if(NOT is_action_valid)::BIGINT AS num_invalid,
        fsum(reward) AS "return",
        bool_or(success) AS success,
        min(step_index) = 0 AND max(step_index) = count(*) - 1
            AND count_if(terminated OR truncated) = 1 AND count(success) = 1
            AND max(step_index) FILTER (terminated OR truncated) = count(*) - 1
            AND max(step_index) FILTER (success IS NOT NULL) = count(*) - 1
            AS is_complete
    FROM steps GROUP BY ALL
"""
"""SQL of one row per trajectory. It reads no text but the two names, and no aggregate is ordered:
that would take three times as long."""

GROUPS = """
    SELECT
        iteration, task_id,
        count_if(is_complete)::BIGINT AS num_trajectories,
        count_if(NOT is_complete)::BIGINT AS num_incomplete,
        avg(success::INTEGER) FILTER (is_complete) AS success_rate,
        avg("return") FILTER (is_complete) AS mean_return,
        avg(num_steps) FILTER (is_complete) AS mean_length,
        max("return") FILTER (is_complete) - min("return") FILTER (is_complete)
            <= 1e-12 * max(abs("return")) FILTER (is_complete) AS is_degenerate,
        sum(num_steps)::BIGINT AS num_steps,
        sum(num_invalid) / sum(num_steps) AS invalid_share,
        list("return" ORDER BY trajectory_id) FILTER (is_complete) AS returns
    FROM trajectory GROUP BY ALL
"""
"""SQL of one row per group, from `trajectory`; degenerate as the view `groups` has it."""

_ITERATIONS = f"""
    WITH trajectory AS ({TRAJECTORIES}), grouped AS ({GROUPS}),
    play AS (
        SELECT
            iteration,
            count(*) AS num_groups,
            sum(num_trajectories)::BIGINT AS num_trajectories,
            sum(num_incomplete)::BIGINT AS num_incomplete,
            sum(success_rate * num_trajectories) / sum(num_trajectories) AS success_rate,
            sum(mean_return * num_trajectories) / sum(num_trajectories) AS mean_return,
            sum(mean_length * num_trajectories) / sum(num_trajectories) AS mean_length,
            sum(invalid_share * num_steps) / sum(num_steps) AS invalid_share,
            count_if(is_degenerate) / count(is_degenerate) AS degenerate_share,
            sum(num_steps)::BIGINT AS num_steps
        FROM grouped GROUP BY iteration
    ),
    choice AS (
        SELECT iteration, task_id, state_id, sum(visits) AS visits
        FROM edges GROUP BY iteration, task_id, state_id, action
    ),
    chosen AS (
        SELECT
            iteration, sum(visits) AS visits,
            sum(visits) * ln(sum(visits)) - sum(visits * ln(visits)) AS nats
        FROM choice GROUP BY iteration, task_id, state_id
    ),
    spread AS (
        SELECT iteration, sum(nats) / sum(visits) AS action_entropy FROM chosen GROUP BY iteration
    )
    SELECT * FROM play LEFT JOIN spread USING (iteration) ORDER BY iteration
"""

_METRICS = tuple(c.name for c in TRAINING_COLUMNS if c.name not in ("training", "update", "epoch"))


def iteration_facts(store: Store, *, run_id: str, iteration: int | None = None) -> pa.Table:
    """Return one row per iteration of a run.

    `action_entropy` is the entropy of the actions taken in a state, in nats, averaged over the
    states of all groups by their visits; null without credit, which is what knows the states.

    Args:
        store: The store.
        run_id: The run.
        iteration: Only this iteration; files of others are not opened.

    Raises:
        SchemaError: A shard cannot be read.
    """
    return run_trusted_query(store, _ITERATIONS, run_id=run_id, iteration=iteration).table


def training_facts(store: Store, *, run_id: str, iteration: int | None = None) -> pa.Table:
    """Return `iteration, training, metric, value`: what was trained on a run.

    A value is the mean over the updates of one training on one iteration.

    Args:
        store: The store.
        run_id: The run.
        iteration: Only this iteration.

    Raises:
        SchemaError: A file cannot be read.
    """
    means = ", ".join(f'avg("{name}") AS "{name}"' for name in _METRICS)
    sql = f"""
        UNPIVOT (SELECT iteration, training, {means} FROM training GROUP BY iteration, training)
        ON * EXCLUDE (iteration, training) INTO NAME metric VALUE "value"
        ORDER BY metric, training, iteration
    """
    return run_trusted_query(store, sql, run_id=run_id, iteration=iteration).table
