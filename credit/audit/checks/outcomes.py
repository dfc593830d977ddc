"""Checks that reward and success say the same."""

from graphcredit.credit.audit.check import AuditSeverity, Check
from graphcredit.credit.audit.scope import GROUP

_BELOW_FAILURE = f"""
    WITH lost AS (
        SELECT {GROUP}, max("return") AS best,
            arg_min(trajectory_id, row(-"return", trajectory_id)) AS best_lost
        FROM rollouts WHERE NOT success GROUP BY ALL
    )
    SELECT {GROUP}, count(*) AS number, any_value(best) - min("return") AS badness,
        format('{{}} succeeded with return {{:.6g}}, {{}} failed with {{:.6g}}',
            arg_min(trajectory_id, row("return", trajectory_id)), min("return"),
            any_value(best_lost), any_value(best)) AS detail
    FROM rollouts JOIN lost USING ({GROUP})
    WHERE success AND "return" < best GROUP BY {GROUP}
"""

_UNREWARDED = f"""
    SELECT {GROUP}, count(*) AS number, -min("return") AS badness,
        format('{{}} succeeded with return {{:.6g}}',
            arg_min(trajectory_id, row("return", trajectory_id)), min("return")) AS detail
    FROM rollouts WHERE success AND "return" <= 0 GROUP BY {GROUP}
"""

_ONE_OUTCOME = """
    SELECT run_id, iteration, NULL AS task_id, count(*) AS number, number AS badness,
        'all ' || count(*) || CASE WHEN any_value(success) THEN ' succeeded' ELSE ' failed' END
            || CASE WHEN any_value(num_all) > count(*) THEN '; '
                || (any_value(num_all) - count(*)) || ' more have no verdict: judging one outcome '
                || 'alone is selection' ELSE '' END AS detail
    FROM rollouts JOIN (
        SELECT run_id, iteration, count(*) AS num_all FROM trajectories GROUP BY ALL
    ) USING (run_id, iteration)
    GROUP BY run_id, iteration
    HAVING count(*) > 1 AND count(DISTINCT success) = 1 AND count(DISTINCT "return") <= 1
"""

CHECKS: tuple[Check, ...] = (
    Check(
        name="success_below_failure",
        severity=AuditSeverity.ERROR,
        means="have a lower return than a failed one of their group: estimators that compare "
        "returns punish the success",
        remedy="correct reward or success where they are logged, and log the reward of success on "
        "the last step",
        of="successful rollouts",
        places=_BELOW_FAILURE,
    ),
    Check(
        name="success_without_reward",
        severity=AuditSeverity.WARNING,
        means="have a return of 0 or less: estimators that compare returns do not see the success",
        remedy="log the reward of success on the last step, or use estimators that read success "
        "(rewardflow, graphgpo)",
        of="successful rollouts",
        places=_UNREWARDED,
    ),
    Check(
        name="one_outcome",
        severity=AuditSeverity.WARNING,
        means="have the outcome of all others of their iteration: nothing can be compared",
        remedy="of an imported log, tell `graphcredit import --success` what counts, such as "
        "'reward>=0.5'; otherwise play tasks that are neither always won nor always lost",
        of="complete rollouts",
        places=_ONE_OUTCOME,
    ),
)
