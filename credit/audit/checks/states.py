"""Checks of the state graph: company for each step, one outcome per action, the guard kept."""

from graphcredit.credit.audit.check import AuditSeverity, Check
from graphcredit.credit.audit.scope import GROUP, NOTHING, TRAJECTORY, Scope

_ALONE = f"""
    SELECT {GROUP}, count_if(state_group_size = 1) AS number, number / count(*) AS badness,
        number || ' of ' || count(*) || ' steps' AS detail
    FROM credited GROUP BY ALL HAVING number > 0
"""

_ALIASED = f"""
    SELECT {GROUP}, 1 AS number, sum(visits) AS badness,
        quote(action) || ' at node ' || state_id || ' led to nodes '
            || named(list(next_state_id || ' (' || visits || 'x)')) AS detail
    FROM edges SEMI JOIN (
        SELECT {GROUP}, state_id, action FROM edges
        GROUP BY ALL HAVING min(next_state_id) < max(next_state_id)
    ) USING ({GROUP}, state_id, action)
    GROUP BY {GROUP}, state_id, action
"""

# As the guard of a merge has it: a text may have several sets of admissible actions, and may join
# only texts that have all of them and no other, or none that is known.
_MIXED_MERGES = f"""
    WITH sets AS (
        SELECT {GROUP}, state_id, hash(state) AS text,
            hash(list_sort(list_distinct(admissible_actions))) AS actions,
            min(trajectory_id || ' step ' || step_index) AS example
        FROM steps
        JOIN (
            SELECT {TRAJECTORY}, step_index, state_id FROM credited
            SEMI JOIN (FROM nodes WHERE num_merged > 1 AND NOT is_goal)
                USING ({GROUP}, state_id)
        ) USING ({TRAJECTORY}, step_index)
        WHERE admissible_actions IS NOT NULL GROUP BY ALL
    ),
    texts AS (
        SELECT {GROUP}, state_id, text, list(actions ORDER BY actions) AS known,
            min(example) AS example
        FROM sets GROUP BY {GROUP}, state_id, text
    ),
    kinds AS (
        SELECT {GROUP}, state_id, known, min(example) AS example
        FROM texts GROUP BY {GROUP}, state_id, known
    )
    SELECT {GROUP}, 1 AS number, count(*) AS badness,
        format('node {{}} ({{}} texts, {{}}) joins texts that differ in their admissible actions '
            'in {{}} ways, for example at ',
            state_id, any_value(num_merged), quote(any_value(state)), count(*))
            || named(list(example)) AS detail
    FROM kinds JOIN nodes USING ({GROUP}, state_id)
    GROUP BY {GROUP}, state_id HAVING count(*) > 1
"""


def _mixed_merges(scope: Scope) -> str:
    """Return the SQL of merges, which reads long lists, only where there are any merges."""
    is_merged = scope.any("FROM nodes WHERE num_merged > 1 AND NOT is_goal")
    return _MIXED_MERGES if is_merged else NOTHING


CHECKS: tuple[Check, ...] = (
    Check(
        name="steps_alone",
        severity=AuditSeverity.WARNING,
        means="start from a state that no other step of their group starts from: the graph "
        "compares them with nothing. Their step part is 0; reach credits them by their outcome",
        remedy="play larger groups; if states differ by noise only, merge them (`graphcredit "
        "credit --merge`)",
        of="credited steps",
        places=_ALONE,
        limit="max_alone_share",
        needs="credit",
    ),
    Check(
        name="aliased_actions",
        severity=AuditSeverity.WARNING,
        means="led to several states: the state leaves out something that matters, merges too "
        "much, or the environment is random",
        remedy="put what the agent knows (inventory, memory) into the state; raise the merge's "
        "threshold; in a random environment, nothing",
        of="repeated (state, action) pairs",
        places=_ALIASED,
        limit="max_aliased_share",
        needs="credit",
    ),
    Check(
        name="mixed_merges",
        severity=AuditSeverity.ERROR,
        means="join states with different admissible actions: different situations are compared",
        remedy="credit again with the guard on, a higher merge threshold, or `--merge exact`",
        of="merged nodes",
        places=_mixed_merges,
        needs="credit",
    ),
)
