"""SQL of the steps that may head a list: there is something to compare their credit with."""

from graphcredit.store.schema import ROUNDING

_CALL = r"^\s*[\w./:-]+\("


def telling(wanted: str) -> str:
    """Return SQL of the `trajectory_id, step_index` of steps that tell something.

    Left out are groups whose rollouts all have the same return, steps from a state where no other
    rollout did a step, and last messages: the last step of a rollout if it calls no tool and other
    steps of the rollout do.

    Args:
        wanted: The condition on rows of `steps`, by whole groups.
    """
    return f"""
        WITH step AS (
            SELECT task_id, trajectory_id, step_index, state_id, reward,
                regexp_matches(action, '{_CALL}') AS is_call
            FROM (FROM steps WHERE {wanted}) JOIN credit USING (trajectory_id, step_index)
            WHERE state_id IS NOT NULL
        ),
        ended AS (
            SELECT task_id, trajectory_id, max(step_index) AS last, bool_or(is_call) AS has_calls,
                sum(reward) AS "return"
            FROM step GROUP BY ALL
        ),
        uneven AS (
            SELECT task_id FROM ended GROUP BY task_id
            HAVING max("return") - min("return") > {ROUNDING} * max(abs("return"))
        ),
        met AS (
            SELECT task_id, state_id FROM step GROUP BY ALL
            HAVING count(DISTINCT trajectory_id) > 1
        )
        SELECT trajectory_id, step_index FROM step JOIN ended USING (task_id, trajectory_id)
        SEMI JOIN uneven USING (task_id) SEMI JOIN met USING (task_id, state_id)
        WHERE is_call OR NOT has_calls OR step_index < last
    """
