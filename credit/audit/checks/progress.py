"""Checks of progress that is hidden by how its trajectory ended."""

from collections.abc import Callable

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


def _steps(which: str, ends: str, said: str) -> Callable[[Scope], str]:
    """Return what makes the SQL of steps of some progress, in trajectories with some end."""
    return lambda scope: (
        f"""
        SELECT {GROUP}, count_if({which}) AS number, number AS badness,
            number || ' of ' || count(*) || ' steps of {said}' AS detail
        FROM ({judged(scope)}) WHERE {ends} GROUP BY {GROUP} HAVING number > 0
    """
    )


CHECKS: tuple[Check, ...] = (
    Check(
        name="progress_in_failures",
        severity=AuditSeverity.INFO,
        means="led nearer to the goal: credit for whole rollouts punishes them",
        remedy="use an estimator that credits steps (reach)",
        of="judged steps of failures",
        places=_steps("progress > 0", "NOT won", "failures led nearer"),
        needs="distance",
    ),
    Check(
        name="idle_steps_in_successes",
        severity=AuditSeverity.INFO,
        means="did not lead nearer to the goal: credit for whole rollouts rewards them",
        remedy="use an estimator that credits steps (reach)",
        of="judged steps of successes",
        places=_steps("progress <= 0", "won", "successes did not lead nearer"),
        needs="distance",
    ),
)
