"""A query with one row per iteration of a run."""

import pyarrow as pa

from graphcredit.store.layout import Store
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


def iteration_facts(store: Store, *, run_id: str, iteration: int | None = None) -> pa.Table:
    """Return one row per iteration of a run."""
    return answer(store, _ITERATIONS, run_id=run_id, iteration=iteration, tables=GROUPS)
