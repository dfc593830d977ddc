"""Credit for a table of steps."""

from typing import Any, TypeVar

from graphcredit.credit.estimators.table import EstimatorChoice
from graphcredit.credit.iteration.in_memory import OnIncomplete
from graphcredit.credit.iteration.in_memory import compute as compute_arrow
from graphcredit.credit.iteration.settings import settings_by
from graphcredit.credit.options import RECOMMENDED, CreditOptions
from graphcredit.kinds import kind_of
from graphcredit.step_defaults import with_defaults
from graphcredit.store.keywords import takes_options
from graphcredit.store.parquet.er_graph import ErGraph
from graphcredit.store.schema import PARTITION_COLUMNS

Table = TypeVar("Table")
"""A table of any kind of `kinds`, or a list of rows."""


@takes_options(CreditOptions, omit=("set", "state"))
def compute(
    steps: Table,
    *,
    estimators: EstimatorChoice = RECOMMENDED,
    er_graph: ErGraph | None = None,
    on_incomplete: OnIncomplete = "warn",
    **options: Any,
) -> Table:
    """Return the credit of every row of a table of steps, in the kind of the table.

    Example:
        credit = graphcredit.compute(steps, estimators="gigpo,reach")
        advantage = credit["reach_advantage"]

    Args:
        steps: A pyarrow table, a Polars DataFrame or LazyFrame, a pandas DataFrame, a Hugging Face
            Dataset, a DuckDB relation or a list of rows with task_id, trajectory_id, state, action,
            reward and success. Other columns of `steps` are used where they are there; see
            docs/python.md. Of a LazyFrame and a relation only the columns that are needed are read,
            at once. What else has the Arrow stream interface gives a pyarrow table.
        estimators: Names, with commas in one text; objects of `graphcredit.estimators`; or both in
            a list.
        er_graph: The entities of the tasks, for estimators that need them.
        on_incomplete: Where trajectories are not complete: "warn" says how many rows have no credit
            and why, "raise" makes that an error, "ignore" says nothing.
        **options: Of `CreditOptions`.

    Returns:
        A row for each row of `steps`, in its order: trajectory_id, step_index, the columns of
        `credit` and of the estimators; null where a trajectory is not complete. A pandas frame has
        the index of `steps`, a relation belongs to the same connection.

    Warns:
        CreditWarning: Rows have no credit, or an estimator lacks what it needs in some groups.

    Raises:
        SchemaError: A column is missing, or has values that do not fit its type.
        OptionError: An estimator or an option is not right.
        InputError: `steps` is no table; an estimator needs an `er_graph` that is not given; or
            trajectories are not complete, with `on_incomplete="raise"`.
    """
    settings = settings_by(estimators, **options)
    kind, table = kind_of(steps)
    wanted = {*settings.columns, *(column.name for column in PARTITION_COLUMNS)}
    read = kind.read(table, [name for name in kind.names(table) if name in wanted])
    credit = compute_arrow(
        with_defaults(read),
        estimators=settings.estimators,
        merge=settings.merge,
        invalid_action_penalty=settings.invalid_action_penalty,
        er_graph=er_graph,
        on_incomplete=on_incomplete,
    )
    return kind.write(credit, table)
