"""Checks of groups: rollouts of one task, from one state, several, with different returns."""

from graphcredit.credit.audit.check import AuditSeverity, Check
from graphcredit.credit.audit.scope import GROUP, Scope
from graphcredit.store.sql.views import identifier

_INCOMPLETE = f"""
    SELECT {GROUP}, count(*) AS number, number AS badness,
        named(list(trajectory_id)) || ' of ' || any_value(num_all) || ' rollouts' AS detail
    FROM (SELECT *, count(*) OVER (PARTITION BY {GROUP}) AS num_all FROM trajectories)
    WHERE NOT is_complete GROUP BY {GROUP}
"""

_SINGLETONS = f"""
    SELECT {GROUP}, 1 AS number, alike AS badness,
        trajectory_id || ' is alone' || CASE WHEN alike > 1
            THEN '; ' || (alike - 1) || ' other singletons of the iteration begin in its state'
            ELSE '' END AS detail
    FROM (
        SELECT *, count(*) OVER (PARTITION BY run_id, iteration, first_state) AS alike
        FROM rollouts JOIN groups USING ({GROUP}) WHERE size = 1
    )
"""

_UNEQUAL_SIZES = f"""
    WITH counted AS (
        SELECT run_id, iteration, size, count(*) AS num_groups FROM groups WHERE size > 1
        GROUP BY ALL
    ), usual AS (
        SELECT run_id, iteration, size AS usual_size FROM counted
        QUALIFY row_number() OVER (
            PARTITION BY run_id, iteration ORDER BY num_groups DESC, size DESC
        ) = 1
    ), incomplete AS (
        SELECT {GROUP}, count(*) AS num_incomplete
        FROM trajectories WHERE NOT is_complete GROUP BY ALL
    )
    SELECT {GROUP}, 1 AS number, abs(size - usual_size) AS badness,
        size || ' rollouts, where ' || usual_size || ' are usual' || CASE
            WHEN num_incomplete > 0 THEN '; ' || num_incomplete || ' more are incomplete'
            ELSE '' END AS detail
    FROM groups JOIN usual USING (run_id, iteration) LEFT JOIN incomplete USING ({GROUP})
    WHERE size <> usual_size AND size > 1
"""

_EVEN = f"""
    SELECT {GROUP}, 1 AS number, num_steps AS badness,
        'all ' || size || ' rollouts (' || num_steps || ' steps, ' || num_won
            || ' successful) have return ' || format('{{:.6g}}', lowest) AS detail
    FROM groups WHERE is_even AND size > 1
"""


def _dead(scope: Scope) -> str:
    """Return the SQL of groups of equal returns, but for those that some estimator tells apart."""
    if not scope.advantages:
        return _EVEN
    largest = ", ".join(f"max(abs({identifier(name)}))" for name in scope.advantages)
    return f"""
        FROM ({_EVEN}) ANTI JOIN (
            SELECT {GROUP} FROM credited GROUP BY ALL HAVING greatest({largest}) > 0
        ) USING ({GROUP})
    """


_FIRST_STATES = f"""
    WITH begun AS (
        SELECT *,
            CASE WHEN bool_and(first_node IS NOT NULL) OVER (PARTITION BY {GROUP})
                THEN first_node ELSE first_state END AS begin
        FROM rollouts
    ), counted AS (
        SELECT {GROUP}, begin, count(*) AS num_here, min(trajectory_id) AS example
        FROM begun GROUP BY ALL
    ), usual AS (
        SELECT {GROUP}, begin AS usual_begin, num_here AS num_usual, example FROM counted
        QUALIFY row_number() OVER (PARTITION BY {GROUP} ORDER BY num_here DESC, example) = 1
    )
    SELECT {GROUP}, count(*) AS number, number AS badness,
        named(list(trajectory_id)) || ' begin in ' || count(DISTINCT begin)
            || CASE WHEN count(DISTINCT begin) = 1 THEN ' state' ELSE ' states' END
            || ' other than that of ' || any_value(example)
            || CASE WHEN any_value(num_usual) > 1
                THEN ' and ' || (any_value(num_usual) - 1) || ' more' ELSE '' END AS detail
    FROM begun JOIN usual USING ({GROUP})
    WHERE begin <> usual_begin GROUP BY {GROUP}
"""

_APART = f"""
    WITH begun AS (
        SELECT {GROUP}, first_state, first_action, second_state, count(*) AS size
        FROM rollouts WHERE second_state IS NOT NULL GROUP BY ALL
    ), classes AS (
        SELECT {GROUP}, first_state, first_action, count(*) AS num_classes FROM begun
        GROUP BY ALL HAVING count(*) > 1 AND min(size) > 1
    ), members AS (
        SELECT {GROUP}, trajectory_id, num_classes, second_state
        FROM rollouts JOIN classes USING ({GROUP}, first_state, first_action)
    ), mixed AS (
        SELECT DISTINCT {GROUP} FROM (
            SELECT {GROUP}, hash(state) FROM steps JOIN members USING ({GROUP}, trajectory_id)
            WHERE step_index > 0 GROUP BY ALL HAVING count(DISTINCT second_state) > 1
        )
    )
    SELECT {GROUP}, count(*) AS number, number AS badness,
        any_value(num_classes) || ' classes that share no state after the same first step, among '
            || count(*) || ' rollouts' AS detail
    FROM members ANTI JOIN mixed USING ({GROUP}) GROUP BY {GROUP}
"""

_WEIGHTS = f"""
    SELECT {GROUP}, 1 AS number, 1 - any_value(effective_size / size) AS badness,
        format('effective size {{:.1f}} of {{}}: {{}} has {{}} of {{}} steps, {{:.1f}} times an '
            'equal share', any_value(effective_size), any_value(size),
            arg_min(trajectory_id, row(-rollouts.num_steps, trajectory_id)),
            max(rollouts.num_steps),
            any_value(groups.num_steps),
            max(rollouts.num_steps) * any_value(size) / any_value(groups.num_steps)) AS detail
    FROM rollouts JOIN groups USING ({GROUP})
    WHERE effective_size < getvariable('min_effective_share') * size
    GROUP BY {GROUP}
"""

CHECKS: tuple[Check, ...] = (
    Check(
        name="incomplete_trajectories",
        severity=AuditSeverity.WARNING,
        means="never ended, have gaps, or have a value that is null, or a reward or cost that is "
        "out of its range, so they get no credit",
        remedy="of an imported log, tell `graphcredit import --success` what counts; of a recorded "
        "one, find out why workers die: `graphcredit check STORE` names what is wrong, and with "
        "`--recover` turns what workers left into shards",
        of="rollouts",
        places=_INCOMPLETE,
        limit="max_incomplete_share",
    ),
    Check(
        name="singleton_groups",
        severity=AuditSeverity.ERROR,
        means="have a single rollout: there is nothing to compare it with, so its "
        "credit is 0, or without a baseline that of its outcome",
        remedy="give all rollouts of one task the same task_id (not one of their own, nor one with "
        "a path or a time in it), or play each task several times",
        of="groups",
        places=_SINGLETONS,
        limit="max_singleton_share",
    ),
    Check(
        name="unequal_group_sizes",
        severity=AuditSeverity.WARNING,
        means="have more or fewer rollouts than most groups of their iteration that have several",
        remedy="play the missing rollouts, or look for rollouts that went under another task_id; "
        "where the allocation is meant to differ, nothing",
        of="groups",
        places=_UNEQUAL_SIZES,
    ),
    Check(
        name="degenerate_groups",
        severity=AuditSeverity.WARNING,
        means="are dead: all rollouts have the same return and no estimator has an advantage "
        "that tells them apart, while the steps still count in every denominator",
        remedy="play tasks that are neither always won nor always lost, and leave steps without "
        "advantage out of the update (`WHERE <estimator>_advantage <> 0`; `is_degenerate_group` "
        "is about returns alone: the graph may tell steps of such a group apart)",
        of="groups",
        places=_dead,
        limit="max_dead_share",
    ),
    Check(
        name="different_first_states",
        severity=AuditSeverity.WARNING,  # a log may name its tasks, and word each start anew
        means="do not begin where the others of their group do: tasks may be mixed, or one task "
        "is worded anew",
        remedy="where the tasks differ, give each a task_id of its own; where a simulated user "
        "words one task anew, keep the groups, and import with a state that leaves the words out "
        "(`--state results`) or merge the states (`graphcredit credit --merge`)",
        of="complete rollouts",
        places=_FIRST_STATES,
    ),
    Check(
        name="unmixed_classes",
        severity=AuditSeverity.WARNING,
        means="are in groups that fall apart: after the same first step they go on in classes that "
        "never meet, as several tasks under one name do",
        remedy="give each task a task_id of its own (`graphcredit import --group FIELD`); where "
        "chance or a hidden start decides at the first step, nothing",
        of="complete rollouts",
        places=_APART,
    ),
    Check(
        name="unequal_step_weights",
        severity=AuditSeverity.WARNING,
        means="are ruled by their long rollouts wherever each step counts once",
        remedy="weigh steps by 1 / rollout length in the loss, and keep stat_over=trajectories",
        of="groups",
        places=_WEIGHTS,
    ),
)
