"""Credit for a table of steps, or for a store."""

from typing import TypeVar

from graphcredit.credit.estimators.table import EstimatorChoice, chosen
from graphcredit.credit.iteration.engines.local import LOCAL, BatchEngine
from graphcredit.credit.iteration.in_memory import OnIncomplete
from graphcredit.credit.iteration.in_memory import compute as compute_arrow
from graphcredit.credit.iteration.report import CreditReport
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.kinds import kind_of
from graphcredit.step_defaults import with_defaults
from graphcredit.store.layout import LOGGED_STATE, AnyStore
from graphcredit.store.parquet.er_graph import ErGraph
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.schema import PARTITION_COLUMNS

Table = TypeVar("Table")
"""pyarrow.Table, polars.DataFrame, polars.LazyFrame, pandas.DataFrame or duckdb relation."""


def compute(
    steps: Table,
    *,
    estimators: EstimatorChoice,
    merge: str | MergeSettings = "exact",
    invalid_action_penalty: float = 0.0,
    graph_window: int = 0,
    er_graph: ErGraph | None = None,
    on_incomplete: OnIncomplete = "warn",
) -> Table:
    """Return the credit of every row of a table of steps, in the kind of the table.

    Example:
        credit = graphcredit.compute(steps, estimators="gigpo,reach")
        advantage = credit["reach_advantage"]

    Args:
        steps: A pyarrow table, a Polars DataFrame or LazyFrame, a pandas DataFrame or a DuckDB
            relation with task_id, trajectory_id, state, action, reward and success. Other columns
            of `steps` are used where they are there; see docs/python.md. Of a LazyFrame and a
            relation only the columns that are needed are read, at once.
        estimators: Names, with commas in one text; objects of `graphcredit.estimators`; or both in
            a list.
        merge: Which texts are one state: exact, segments, embedding, or these with options.
        invalid_action_penalty: Taken off the reward of every invalid step first.
        graph_window: Find distances on the transitions of the last so many iterations of the same
            tasks too, where `steps` has several.
        er_graph: The entities of the tasks, for estimators that need them.
        on_incomplete: Where trajectories are not complete: "warn" says how many rows have no credit
            and why, "raise" makes that an error, "ignore" says nothing.

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
    settings = CreditSettings(estimators=chosen(estimators), merge=_merge(merge))
    kind = kind_of(steps)
    wanted = {*settings.columns, *(column.name for column in PARTITION_COLUMNS)}
    read = kind.read(steps, [name for name in kind.names(steps) if name in wanted])
    credit = compute_arrow(
        with_defaults(read),
        estimators=settings.estimators,
        merge=settings.merge,
        invalid_action_penalty=invalid_action_penalty,
        graph_window=graph_window,
        er_graph=er_graph,
        on_incomplete=on_incomplete,
    )
    return kind.write(credit, steps)


def assign(
    store: AnyStore,
    *,
    estimators: EstimatorChoice,
    merge: str | MergeSettings = "exact",
    state: str = LOGGED_STATE,
    invalid_action_penalty: float = 0.0,
    graph_window: int = 0,
    run_id: str | None = None,
    iteration: int | None = None,
    only_new: bool = False,
    engine: BatchEngine = LOCAL,
    on_progress: OnProgress = silent,
) -> dict[tuple[str, int], CreditReport]:
    """Assign credit to every complete trajectory of a store, and write it beside the steps.

    Columns of other estimators stay as they are.

    Example:
        graphcredit.assign("store", estimators="reach", merge="segments", only_new=True)

    Args:
        store: A store, or its path.
        estimators: As in `compute`.
        merge: As in `compute`.
        state: Which states to take: logged, or those that `restate` wrote, by their rule.
        invalid_action_penalty: Taken off the reward of every invalid step first.
        graph_window: Find distances on the transitions of the last so many iterations of the same
            tasks too.
        run_id: Only this run.
        iteration: Only this iteration.
        only_new: Only iterations whose credit by these estimators is missing, stale or made with
            other settings.
        engine: Computes the batches; the bytes that are written are the same with any.
        on_progress: Called with the iterations done, as a fraction, and their number.

    Returns:
        A report for each (run, iteration) that was credited.

    Raises:
        InputError: There are no steps to credit, no entities where an estimator needs them, or
            another process credits one of the iterations.
        OptionError: An estimator or an option is not right.
        SchemaError: A shard cannot be read.
        NothingToCreditError: No trajectory is complete; no file was changed.
    """
    settings = CreditSettings(
        estimators=chosen(estimators),
        merge=_merge(merge),
        state=state,
        invalid_action_penalty=invalid_action_penalty,
        graph_window=graph_window,
    )
    return assign_credit(
        store,
        settings,
        run_id=run_id,
        iteration=iteration,
        only_new=only_new,
        engine=engine,
        on_progress=on_progress,
    )


def _merge(merge: str | MergeSettings) -> MergeSettings:
    return merge if isinstance(merge, MergeSettings) else MergeSettings(merge=merge)
