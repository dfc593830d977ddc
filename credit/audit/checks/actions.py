"""The check of action lists: do they say anything of the states they were logged at?"""

import pyarrow as pa

from graphcredit.credit.audit.check import AuditSeverity, Check
from graphcredit.credit.audit.scope import GROUP, Scope
from graphcredit.credit.inputs.analogies.action_lists import Worth, judge_lists
from graphcredit.credit.merging.admissible import UNKNOWN

_TASKS = """
    SELECT task_id FROM groups WHERE run_id = $run_id AND iteration = $iteration ORDER BY task_id
"""

# Where there is credit, its nodes are the states. A list is sorted once for all steps of a state
# that have it.
_VISITS = f"""
    WITH numbered AS (
        SELECT task_id, row_number() OVER (ORDER BY task_id) - 1 AS number
        FROM groups WHERE run_id = $run_id AND iteration = $iteration
    ), visits AS (
        SELECT number, admissible_actions AS actions,
            hash(number, CASE WHEN state_id IS NULL THEN hash(state) ELSE state_id END) AS place
        FROM steps
        JOIN rollouts USING (run_id, iteration, trajectory_id, task_id)
        JOIN numbered USING (task_id)
        LEFT JOIN (SELECT run_id, iteration, trajectory_id, step_index, state_id FROM credit)
            USING (run_id, iteration, trajectory_id, step_index)
        WHERE run_id = $run_id AND iteration = $iteration
    ), shown AS (
        SELECT number, place, any_value(actions) AS actions, count(*) AS weight
        FROM visits GROUP BY number, place, hash(actions)
    )
    SELECT number, weight, (place >> 1)::BIGINT AS place,
        CASE WHEN actions IS NULL THEN {UNKNOWN}
            ELSE (hash(list_sort(list_distinct(actions))) >> 1)::BIGINT END AS list
    FROM shown ORDER BY ALL
"""

_TABLE = """
    CREATE TEMP TABLE action_lists (
        run_id VARCHAR, iteration INTEGER, task_id VARCHAR, worth VARCHAR,
        num_steps BIGINT, num_listed BIGINT, again DOUBLE, elsewhere DOUBLE
    )
"""

_DETAIL = f"""
    CASE worth
        WHEN '{Worth.PARTIAL.name}' THEN format('{{}} of {{}} steps have no list',
            num_steps - num_listed, num_steps)
        WHEN '{Worth.CONSTANT.name}' THEN format(
            'the visits of other states show the same list {{:.0f}}% of the time', 100 * elsewhere)
        ELSE format('the other visits of a state show the same list {{:.0f}}% of the time',
            100 * again)
    END
"""


def judged_lists(scope: Scope) -> str:
    """Return the name of a table of what the lists of each group are worth, made once.

    One iteration is judged at a time, so that no more than its steps are in memory.
    """
    connection = scope.connection
    made = "FROM duckdb_tables() WHERE table_name = 'action_lists'"
    if not scope.any(made):
        connection.execute(_TABLE)
        iterations = "SELECT DISTINCT run_id, iteration FROM groups ORDER BY ALL"
        for run_id, iteration in connection.execute(iterations).fetchall():
            _judge(scope, run_id, iteration)
    return "action_lists"


def _judge(scope: Scope, run_id: str, iteration: int) -> None:
    """Append the groups of an iteration to the table."""
    parameters = {"run_id": run_id, "iteration": iteration}
    tasks = scope.connection.sql(_TASKS, params=parameters).to_arrow_table()
    visits = scope.connection.sql(_VISITS, params=parameters).to_arrow_table()
    names = ("list", "place", "number", "weight")
    listed, place, number, weight = (visits[name].to_numpy() for name in names)
    lists = judge_lists(listed, place, number, len(tasks), weight)
    judged = tasks.append_column("worth", pa.array([Worth(w).name for w in lists.worth.tolist()]))
    for name in ("num_steps", "num_listed", "again", "elsewhere"):
        judged = judged.append_column(name, pa.array(getattr(lists, name)))
    scope.connection.register("judged", judged)
    scope.connection.execute(
        "INSERT INTO action_lists SELECT $run_id, $iteration, * FROM judged", parameters
    )
    scope.connection.unregister("judged")


def _weak(scope: Scope) -> str:
    """Return the SQL of groups whose lists are logged and say little."""
    names = ", ".join(f"'{kind.name}'" for kind in (Worth.PARTIAL, Worth.CONSTANT, Worth.CHANGING))
    return f"""
        SELECT {GROUP}, 1 AS number, num_steps AS badness, {_DETAIL} AS detail
        FROM {judged_lists(scope)}
        WHERE worth IN ({names})
    """


CHECKS: tuple[Check, ...] = (
    Check(
        name="weak_action_lists",
        severity=AuditSeverity.INFO,
        means="have lists of admissible actions on some steps only, or lists that say nothing of "
        "their states: most states show the same one, or a state shows others at other visits",
        remedy="log on each step what the environment accepts in its state, and null where that is "
        "not known",
        of="groups",
        places=_weak,
    ),
)
