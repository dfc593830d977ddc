"""SQL of trajectories and groups, counted as in `credit` and `audit`, but faster.

A trajectory is complete by the rule of the view `trajectories`: its steps have their values and are
0 … T-1, each next_state is the following state, and exactly the last step ends the episode.
Comparing states means reading all texts. The credit stage did that already, and its shards have the
result: a trajectory is complete if and only if its steps have a state_id. So only trajectories that
credit has not seen, or not with all steps, are compared here.
"""

from graphcredit.store.schema import ROUNDING
from graphcredit.store.sql.views import HAS_VALUES

# No aggregate has an ORDER BY, which would take three times as long.
_TRAJECTORIES = f"""
    WITH played AS (
        SELECT
            iteration, task_id, trajectory_id,
            count(*) AS num_steps,
            count_if(NOT is_action_valid)::BIGINT AS num_invalid,
            fsum(reward) AS "return",
            bool_or(success) AS success,
            min(step_index) = 0 AND max(step_index) = count(*) - 1
                AND count_if(terminated OR truncated) = 1
                AND max(step_index) FILTER (terminated OR truncated) = count(*) - 1
                AND count(success) = count_if(success IS NOT NULL AND (terminated OR truncated))
                AS is_ended
        FROM steps GROUP BY ALL
    ),
    judged AS (
        SELECT iteration, trajectory_id, count(*) AS num_steps, count(state_id) AS num_credited
        FROM credit GROUP BY ALL
    ),
    known AS (
        SELECT
            played.*,
            CASE WHEN judged.num_steps = played.num_steps
                THEN num_credited = played.num_steps END AS is_credited
        FROM played LEFT JOIN judged USING (iteration, trajectory_id)
    ),
    unseen AS (
        SELECT iteration, task_id, trajectory_id
        FROM known WHERE is_credited IS NULL AND is_ended
    ),
    compared AS (
        SELECT
            iteration, task_id, trajectory_id,
            count_if({HAS_VALUES}) = count(*)
                AND coalesce(bit_xor(hash(hash(state, step_index))) FILTER (step_index > 0), 0)
                = coalesce(bit_xor(hash(hash(next_state, step_index + 1)))
                    FILTER (NOT (terminated OR truncated)), 0) AS is_whole
        FROM steps SEMI JOIN unseen USING (iteration, task_id, trajectory_id) GROUP BY ALL
    )
    SELECT
        known.* EXCLUDE (is_ended, is_credited),
        coalesce(is_credited, false) AS is_credited,
        coalesce(known.is_credited, is_ended AND is_whole) AS is_complete
    FROM known LEFT JOIN compared USING (iteration, task_id, trajectory_id)
"""

TRAJECTORIES = {"trajectory": _TRAJECTORIES}
"""The table `trajectory`, for `views.answer`: one row per trajectory. A page asks several questions
about it, and reading the steps takes most of the time of each."""

_GROUPED = f"""
    SELECT
        iteration, task_id,
        count_if(is_complete)::BIGINT AS num_trajectories,
        count_if(is_credited)::BIGINT AS num_credited,
        count_if(NOT is_complete)::BIGINT AS num_incomplete,
        avg(success::INTEGER) FILTER (is_complete) AS success_rate,
        avg("return") FILTER (is_complete) AS mean_return,
        avg(num_steps) FILTER (is_complete) AS mean_length,
        max("return") FILTER (is_complete) - min("return") FILTER (is_complete)
            <= {ROUNDING} * max(abs("return")) FILTER (is_complete) AS is_degenerate,
        sum(num_steps)::BIGINT AS num_steps,
        sum(num_invalid) / sum(num_steps) AS invalid_share,
        list("return" ORDER BY trajectory_id) FILTER (is_complete) AS returns
    FROM trajectory GROUP BY ALL
"""

GROUPS = TRAJECTORIES | {"grouped": _GROUPED}
"""The same, and the table `grouped`: one row per group, degenerate by the rule of the view
`groups`."""
