"""Numbers that an audit reports whatever it finds, and totals that findings are shares of."""

from dataclasses import dataclass

from graphcredit.credit.audit.check import Need, Sql
from graphcredit.credit.audit.scope import GROUP, Scope
from graphcredit.store.sql.views import identifier, quoted


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """A row of the table: some numbers that belong together."""

    name: str
    rows: Sql
    """SQL of (label, value) rows, in order; a null value is left out."""
    needs: Need = "steps"


def _columns(*pairs: tuple[str, str], source: str) -> str:
    """Return SQL of one row per (label, expression)."""
    labels = ", ".join(quoted(label) for label, _ in pairs)
    values = ", ".join(f"({value})::DOUBLE" for _, value in pairs)
    return f"SELECT unnest([{labels}]), unnest(v) FROM (SELECT [{values}] AS v {source})"


def _mean_advantages(scope: Scope) -> str:
    pairs = [
        pair
        for name in scope.advantages
        for pair in (
            (f"{name.removesuffix('_advantage')} mean", f"avg({identifier(name)})"),
            (f"{name.removesuffix('_advantage')} std", f"stddev_samp({identifier(name)})"),
        )
    ]
    return _columns(*pairs, source="FROM credited") if pairs else "SELECT '', 0 WHERE false"


NUMBERS: tuple[Numbers, ...] = (
    Numbers(
        name="group sizes",
        rows="SELECT size::VARCHAR, count(*) FROM groups GROUP BY size ORDER BY size",
    ),
    Numbers(
        name="returns",
        rows=_columns(
            ("mean", 'avg("return")'),
            ("std", 'stddev_samp("return")'),
            ("min", 'min("return")'),
            ("max", 'max("return")'),
            ("mean of successes", 'avg("return") FILTER (success)'),
            ("mean of failures", 'avg("return") FILTER (NOT success)'),
            source="FROM rollouts",
        ),
    ),
    Numbers(
        name="step weight",
        rows=_columns(
            ("effective share of groups, mean", "avg(effective_size / size)"),
            ("least", "min(effective_size / size)"),
            ("failures among rollouts", "1 - sum(num_won) / sum(size)"),
            (
                "failures among steps",
                "(SELECT sum(num_steps) FILTER (NOT success) / sum(num_steps) FROM rollouts)",
            ),
            source="FROM groups",
        ),
    ),
    Numbers(
        name="state group sizes",
        rows=f"""
            SELECT low || CASE WHEN low > 1 THEN '-' || (2 * low - 1) ELSE '' END, count(*)
            FROM (
                SELECT (2 ** floor(log2(count(*))))::BIGINT AS low
                FROM credited WHERE state_id IS NOT NULL GROUP BY {GROUP}, state_id
            ) GROUP BY low ORDER BY low
        """,
        needs="credit",
    ),
    Numbers(name="advantages", rows=_mean_advantages, needs="credit"),
)


TOTALS: dict[str, Sql] = {
    "rollouts": "SELECT count(*) FROM trajectories",
    "complete rollouts": "SELECT count(*) FROM rollouts",
    "successful rollouts": "SELECT count(*) FROM rollouts WHERE success",
    "groups": "SELECT count(*) FROM groups",
    "credited steps": "SELECT count(*) FROM credited",
    "repeated (state, action) pairs": f"""
        SELECT count(*) FROM (
            SELECT 1 FROM edges GROUP BY {GROUP}, state_id, action HAVING sum(visits) > 1
        )
    """,
    "merged nodes": "SELECT count(*) FROM nodes WHERE num_merged > 1 AND NOT is_goal",
    "estimators of iterations": "SELECT count(*) FROM made_by",
    "advantage columns of groups": lambda scope: (
        f"SELECT {len(scope.balanced)} * count(*) FROM groups"
    ),
    "advantages of groups": lambda scope: f"SELECT {len(scope.advantages)} * count(*) FROM groups",
}
"""How many there are of what checks count."""
