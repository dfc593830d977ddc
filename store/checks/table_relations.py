"""The rules about the rows of the other tables, each a SQL condition: to add a rule, add a row."""

from collections.abc import Sequence
from functools import partial

from graphcredit.store.checks.file_rules import RECREDIT, REWRITE, RowRule
from graphcredit.store.checks.relations import (
    RowRelation,
    no_null_elements,
    not_null,
    relation,
    rule,
)
from graphcredit.store.schema import (
    CREDIT_COLUMNS,
    EDGE_COLUMNS,
    ENTITY_COLUMNS,
    NODE_COLUMNS,
    RELATION_COLUMNS,
    STATE_SCORE_COLUMNS,
    Column,
)

_of_credit = partial(rule, remedy=RECREDIT)


def _table(
    kind: str,
    columns: tuple[Column, ...],
    *rules: RowRule,
    key: str = "",
    references: Sequence[tuple[str, str, str]] = (),
    sql: str = "",
    remedy: str = REWRITE,
) -> RowRelation:
    """Return the relation of one kind of file, with the rules of its key and its references.

    Args:
        kind: The kind.
        columns: Its columns.
        rules: Rules of its rows besides those.
        key: Columns in which no two rows are equal.
        references: Columns of a row, the kind that must have a row with these values, and what
            the columns are called there.
        sql: A relation over the files with further columns, for `rules`.
        remedy: The advice if one of these rules is broken.
    """
    selected, checked = ["*"], [*not_null(columns, remedy), *rules]
    if key:
        selected.append(f"count(*) OVER (PARTITION BY {key}) AS copies")
        checked.append(
            rule("unique_row", f"({key}) must be unique", "copies = 1", _shown(key), remedy)
        )
    for names, other, their_names in references:
        column = f"is_in_{other}_{len(selected)}"
        selected.append(f"({names}) IN (SELECT ({their_names}) FROM {other}_table) AS {column}")
        holds = f"({names}) must be a row of {other}"
        checked.append(rule("reference", holds, column, _shown(names), remedy))
    needs = {kind, *(other for _, other, _ in references)}
    source = f"({sql})" if sql else f"{kind}_table"
    return relation(kind, " ".join(needs), f"SELECT {', '.join(selected)} FROM {source}", *checked)


def _shown(names: str) -> str:
    """Return the SQL of some columns' values, as a text."""
    return f"concat_ws(', ', {names})"


TABLE_RELATIONS: tuple[RowRelation, ...] = (
    relation(
        "credit",
        "steps credit",
        """
        SELECT credit_table.*, coalesce(is_complete, false) AS is_complete
        FROM credit_table LEFT JOIN trajectories USING (trajectory_id)
        """,
        *not_null(CREDIT_COLUMNS, RECREDIT),
        _of_credit(
            "no_credit_for_incomplete",
            "credit must be null on the steps of incomplete rollouts",
            "is_complete OR NOT has_credit",
            "'credit in ' || trajectory_id",
        ),
        _of_credit(
            "finite_credit",
            "credit must be finite, or null where there is none",
            "has_finite_credit",
            "'NaN or an infinite number at step ' || step_index || ' of ' || trajectory_id",
        ),
    ),
    _table(
        "nodes",
        NODE_COLUMNS,
        _of_credit("node_ids", "node ids must start at 0 in each task", "first_id = 0", "first_id"),
        _of_credit("one_goal", "a task has one goal node at most", "num_goals <= 1", "num_goals"),
        key="task_id, state_id",
        sql="""
        SELECT *, min(state_id) OVER (PARTITION BY task_id) AS first_id,
            count_if(is_goal) OVER (PARTITION BY task_id) AS num_goals
        FROM nodes_table
        """,
        remedy=RECREDIT,
    ),
    _table(
        "edges",
        EDGE_COLUMNS,
        _of_credit(
            "edge_cost", "cost must be finite and above 0", "isfinite(cost) AND cost > 0", "cost"
        ),
        references=(
            ("task_id, state_id", "nodes", "task_id, state_id"),
            ("task_id, next_state_id", "nodes", "task_id, state_id"),
        ),
        remedy=RECREDIT,
    ),
    _table(
        "state_scores",
        STATE_SCORE_COLUMNS,
        rule(
            "success_count",
            "num_success must be between 0 and num_total",
            "num_success BETWEEN 0 AND num_total",
            "num_success || ' of ' || num_total",
        ),
        key="task_id, coalesce(identity, state), signature",
    ),
    _table("entities", ENTITY_COLUMNS, no_null_elements("aliases"), key="task_id, entity_id"),
    _table(
        "relations",
        RELATION_COLUMNS,
        references=(
            ("task_id, head_id", "entities", "task_id, entity_id"),
            ("task_id, tail_id", "entities", "task_id, entity_id"),
        ),
    ),
)
"""All but those about steps, each over the tables that it needs."""
