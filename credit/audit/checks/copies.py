"""Checks for trajectories that are there twice, under different names.

Two rollouts of a good policy may take the same actions by chance, so equal steps alone prove
nothing. Among trajectories with equal states, actions and rewards, those whose steps also have
equal times are copies. This is asked only in iterations whose clock tells rollouts apart: no two
trajectories that differ have equal times. All others of one task are merely equal: a warning from
`min_equal_steps` steps on.
"""

from graphcredit.credit.audit.check import AuditSeverity, Check
from graphcredit.credit.audit.scope import GROUP

TABLE = """
    CREATE TEMP TABLE alike AS
    WITH candidates AS (
        SELECT *, bool_or(is_alike) OVER (PARTITION BY run_id, iteration) AS is_needed FROM (
            SELECT *, count(*) OVER (PARTITION BY run_id, iteration, path, num_steps) > 1
                AS is_alike
            FROM rollouts
        )
    ), clocks AS (
        SELECT run_id, iteration, bool_and(num_paths = 1) AS tells FROM (
            SELECT run_id, iteration, clock, count(DISTINCT path) AS num_paths
            FROM candidates WHERE is_needed GROUP BY ALL
        ) GROUP BY ALL
    )
    SELECT *, tells AND count(*) OVER (PARTITION BY run_id, iteration, path, clock) > 1 AS is_copy
    FROM candidates JOIN clocks USING (run_id, iteration) WHERE is_alike
"""
"""Makes the table that the checks of this file read: rollouts that are like others."""

_SET = """
    min(task_id) AS task_id, count(*) AS number, count(*) * any_value(num_steps) AS badness,
    named(list(trajectory_id)) || ' (' || any_value(num_steps) || ' steps)' AS detail
"""

_COPIES = f"""
    SELECT run_id, iteration, {_SET} FROM alike WHERE is_copy GROUP BY run_id, iteration, path
"""

_EQUAL = f"""
    SELECT run_id, iteration, {_SET} FROM alike
    WHERE NOT is_copy AND num_steps >= getvariable('min_equal_steps')
    GROUP BY {GROUP}, path HAVING count(*) > 1
"""

CHECKS: tuple[Check, ...] = (
    Check(
        name="copied_trajectories",
        severity=AuditSeverity.ERROR,
        means="are the same rollout under several names: equal steps at equal times. They count "
        "double in every mean",
        remedy="keep one of each; look for padding that repeats samples, or for a log that was "
        "imported twice",
        of="complete rollouts",
        places=_COPIES,
    ),
    Check(
        name="equal_trajectories",
        severity=AuditSeverity.WARNING,
        means="take the same actions through the same states as another of their group",
        remedy="look whether they are copies; if not, the policy hardly explores: sample at a "
        "higher temperature",
        of="complete rollouts",
        places=_EQUAL,
    ),
)
