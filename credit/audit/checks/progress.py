"""Checks of progress that is hidden by how its trajectory ended."""

from graphcredit.credit.audit.check import AuditSeverity, Check
from graphcredit.credit.audit.scope import GROUP, Scope


def judged(scope: Scope) -> str:
    """Return SQL of steps with the progress they made: task, won, progress.

    Progress is measured by the true distance where any is logged, else by the observed one.
    Steps of a success always have an observed way to the goal.
    """
    if scope.has_truth:
        return f"""
            SELECT {GROUP}, rollouts.success AS won,
                oracle_distance - next_oracle_distance AS progress
            FROM steps JOIN rollouts USING (run_id, iteration, trajectory_id, task_id)
            WHERE isfinite(progress)
        """
    return f"""
        SELECT {GROUP}, won,
            goal_distance - coalesce(next_goal_distance, 'inf'::FLOAT) AS progress
        FROM credited WHERE goal_distance IS NOT NULL
    """


def _hidden(scope: Scope) -> str:
    return f"""
        SELECT {GROUP}, count_if(progress > 0) AS number, number AS badness,
            number || ' of ' || count(*) || ' steps of failures led nearer' AS detail
        FROM ({judged(scope)}) WHERE NOT won GROUP BY {GROUP} HAVING number > 0
    """


def _idle(scope: Scope) -> str:
    return f"""
        SELECT {GROUP}, count_if(progress <= 0) AS number, number AS badness,
            number || ' of ' || count(*) || ' steps of successes did not lead nearer' AS detail
        FROM ({judged(scope)}) WHERE won GROUP BY {GROUP} HAVING number > 0
    """


CHECKS: tuple[Check, ...] = (
    Check(
        name="progress_in_failures",
        severity=AuditSeverity.INFO,
        means="led nearer to the goal: credit for whole trajectories punishes them",
        remedy="use an estimator that credits steps (reach)",
        of="judged steps of failures",
        places=_hidden,
        needs="distance",
    ),
    Check(
        name="idle_steps_in_successes",
        severity=AuditSeverity.INFO,
        means="did not lead nearer to the goal: credit for whole trajectories rewards them",
        remedy="use an estimator that credits steps (reach)",
        of="judged steps of successes",
        places=_idle,
        needs="distance",
    ),
)
