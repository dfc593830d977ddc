"""Checks that credit is of these trajectories, and balances."""

from collections.abc import Mapping

from graphcredit.credit.audit.check import AuditSeverity, Check
from graphcredit.credit.audit.scope import GROUP, NOTHING, TRAJECTORY, Scope
from graphcredit.store.sql.views import identifier, quoted


def _per_trajectory(scope: Scope) -> str:
    """Return SQL of one row per trajectory and episode column; none without such columns."""
    names = scope.balanced_over("trajectories")
    if not names:
        return ""
    return _unpivoted(
        f"{GROUP}, trajectory_id, count(*) AS num_steps",
        {name: (f"avg({identifier(name)}::DOUBLE)",) for name in names},
        ("mean",),
    )


def _per_state(scope: Scope) -> str:
    """Return SQL of one row per state group and step column; none without such columns."""
    names = scope.balanced_over("states", "group")
    if not names:
        return ""
    return _unpivoted(
        f"{GROUP}, state_id, count(*) AS num_steps",
        {
            name: (f"avg({column}::DOUBLE)", f"max(abs({column}))")
            for name in names
            for column in [identifier(name)]
        },
        ("mean", "largest"),
    )


def _unpivoted(keys: str, columns: Mapping[str, tuple[str, ...]], names: tuple[str, ...]) -> str:
    """Return SQL that groups `credited` in one pass, and has one row per key and column."""
    values = [
        f"{sql} AS {identifier(f'{column}.{number}')}"
        for column, sqls in columns.items()
        for number, sql in enumerate(sqls)
    ]
    rows = [
        "("
        + ", ".join(identifier(f"{column}.{number}") for number in range(len(names)))
        + f") AS {quoted(column)}"
        for column in columns
    ]
    return f"""
        SELECT * FROM (SELECT {keys}, {", ".join(values)} FROM credited GROUP BY ALL)
        UNPIVOT (({", ".join(names)}) FOR "column" IN ({", ".join(rows)}))
    """


def _unbalanced(scope: Scope) -> str:
    trajectories, states = _per_trajectory(scope), _per_state(scope)
    parts = [_unbalanced_episodes(trajectories)] if trajectories else []
    if states:
        whole = ", ".join(map(quoted, scope.balanced_over("group")))
        of_group = f"""
            SELECT {GROUP}, "column", sum(mean * num_steps) / sum(num_steps) AS mean,
                max(largest) AS largest, sum(num_steps) AS num_steps, ' of the group' AS place
            FROM ({states}) WHERE "column" IN [{whole}] GROUP BY {GROUP}, "column"
        """
        of_state = f"""
            SELECT {GROUP}, "column", mean, largest, num_steps, ' from node ' || state_id AS place
            FROM ({states}) WHERE "column" NOT IN [{whole}]
        """
        parts += [_unbalanced_steps(of_group), _unbalanced_steps(of_state)]
    return " UNION ALL ".join(f"({part})" for part in parts) or NOTHING


def _unbalanced_episodes(per_trajectory: str) -> str:
    """Compare the mean over trajectories, or over steps where the options say so, with 0."""
    return f"""
        SELECT {GROUP}, 1 AS number, abs(balance) / largest AS badness,
            format('{{}}: mean {{:+.4g}} over {{}} rollouts, {{:+.4g}} over their {{}} steps, '
                'should be 0 over {{}}; largest {{:.4g}}', "column",
                off(over_trajectories, largest), size, off(over_steps, largest), num_steps,
                stat_over, largest) AS detail
        FROM (
            SELECT {GROUP}, "column", avg(mean) AS over_trajectories, count(*) AS size,
                sum(mean * num_steps) / sum(num_steps) AS over_steps, sum(num_steps) AS num_steps,
                max(abs(mean)) AS largest,
                if(any_value(stat_over) = 'steps', 'steps', 'rollouts') AS stat_over,
                CASE any_value(stat_over) WHEN 'steps' THEN over_steps ELSE over_trajectories END
                    AS balance
            FROM (
                SELECT *, split_part("column", '_', 1) AS estimator FROM ({per_trajectory})
            ) LEFT JOIN made_by USING (run_id, iteration, estimator)
            GROUP BY {GROUP}, "column"
        )
        WHERE off(balance, largest) <> 0
    """


def _unbalanced_steps(means: str) -> str:
    return f"""
        SELECT {GROUP}, 1 AS number, max(abs(mean) / largest) AS badness,
            arg_min(
                format('{{}}: mean {{:+.4g}} over {{}} steps{{}}, should be 0; largest {{:.4g}}',
                    "column", mean, num_steps, place, largest),
                row(-abs(mean) / largest, place)
            ) AS detail
        FROM ({means})
        WHERE off(mean, largest) <> 0
        GROUP BY {GROUP}, "column"
    """


def _late(scope: Scope) -> str:
    """Return SQL of advantages that leave out the first half of long rollouts."""
    parts = [
        f"""
        SELECT {GROUP}, 1 AS number, 0.5 - early / whole AS badness,
            format('{{}}: the first half of its rollouts of {{}} steps and more has {{:.1f}} % of '
                'all credit, where equal shares are 50 %', {quoted(name[:-10])},
                least,
                100 * early / whole) AS detail
        FROM (
            SELECT {GROUP}, any_value(least) AS least,
                sum(abs({identifier(name)}::DOUBLE)) AS whole,
                sum(abs({identifier(name)}::DOUBLE) * (2 * step_index < length)::INT) AS early
            FROM (
                SELECT *, 1 + max(step_index) OVER (PARTITION BY {TRAJECTORY}) AS length,
                    getvariable('min_long_steps') AS least
                FROM credited WHERE is_finite
            ) WHERE length >= least AND group_size > 1 GROUP BY {GROUP}
        ) WHERE early < getvariable('min_early_credit') * whole
        """
        for name in scope.advantages
    ]
    return " UNION ALL ".join(parts) or NOTHING


_STALE = f"""
    SELECT {GROUP}, 1 AS number, greatest(size - num_credited, 1) AS badness,
        CASE WHEN num_credited < size
            THEN (size - num_credited) || ' of ' || size || ' rollouts have no credit'
            ELSE 'credited as a group of ' || credited_size || ', has ' || size || ' rollouts'
        END AS detail
    FROM groups JOIN (
        SELECT {GROUP}, count(is_credited) AS num_credited, any_value(group_size) AS credited_size,
            min(group_size) AS least_size, max(group_size) AS greatest_size
        FROM rollouts LEFT JOIN (
            SELECT {TRAJECTORY}, any_value(group_size) AS group_size, true AS is_credited
            FROM credited GROUP BY {TRAJECTORY}
        ) USING ({TRAJECTORY})
        GROUP BY {GROUP}
    ) USING ({GROUP})
    WHERE (num_credited < size OR least_size <> size OR greatest_size <> size)
        AND (run_id, iteration) IN (SELECT (run_id, iteration) FROM credited)
"""


_OUTDATED = """
    WITH found AS (
        SELECT run_id, iteration, estimator, estimator || ': ' || reason AS detail
        FROM credit_state WHERE state IN ('mixed', 'stale')
        UNION ALL
        SELECT run_id, iteration, estimator,
            'another version of the formula made ' || estimator AS detail
        FROM made_by WHERE is_outdated
    )
    SELECT run_id, iteration, NULL AS task_id, 1 AS number, 1.0 AS badness, min(detail) AS detail
    FROM found GROUP BY run_id, iteration, estimator
"""

_INFINITE = f"""
    SELECT {GROUP}, count(*) AS number, number AS badness,
        'first at step ' || arg_min(step_index, (trajectory_id, step_index)) || ' of '
            || min(trajectory_id) AS detail
    FROM credited WHERE NOT is_finite GROUP BY {GROUP}
"""

CHECKS: tuple[Check, ...] = (
    Check(
        name="stale_credit",
        severity=AuditSeverity.ERROR,
        means="have credit that was computed from other rollouts than they have now",
        remedy="run `graphcredit credit` again for the iteration",
        of="groups",
        places=_STALE,
        needs="credit",
    ),
    Check(
        name="outdated_credit",
        severity=AuditSeverity.ERROR,
        means="are not what they would be now: made of other step shards, entities or rules of "
        "states, by another version of the formula, or in several ways (a run was killed)",
        remedy="run the estimator again: `graphcredit credit STORE --estimator …`",
        of="estimators of iterations",
        places=_OUTDATED,
        needs="credit",
    ),
    Check(
        name="infinite_credit",
        severity=AuditSeverity.ERROR,
        means="have a number of credit that is NaN or infinite; the other checks leave it out",
        remedy="run `graphcredit credit` again: it refuses what would make such a number",
        of="credited steps",
        places=_INFINITE,
        needs="credit",
    ),
    Check(
        name="unbalanced_advantages",
        severity=AuditSeverity.ERROR,
        means="have a mean that should be 0 and is not: some group is encouraged or discouraged "
        "as a whole",
        remedy="run the estimator again over whole groups; if another program wrote the column, "
        "take the mean over what the message names",
        of="advantage columns of groups",
        places=_unbalanced,
        needs="credit",
    ),
    Check(
        name="late_credit",
        severity=AuditSeverity.WARNING,
        means="give the first half of long rollouts next to nothing: what was decided early is "
        "not learnt",
        remedy="where agents commit early, use `reach`, `gigpo` or `grpo`; where only the end "
        "matters, nothing",
        of="advantages of groups",
        places=_late,
        needs="credit",
    ),
)
