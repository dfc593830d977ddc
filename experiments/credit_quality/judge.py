"""Judge every estimator in one world with one kind of lists: a row for each game and column."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from experiments.credit_quality.worlds import ITERATION, WORLDS
from graphcredit.credit.audit.agreement import agreements
from graphcredit.credit.estimators.table import ESTIMATORS, Assigner, configure, estimator_named
from graphcredit.credit.inputs.table import MENTIONS
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store
from graphcredit.store.files.tables import write_table
from graphcredit.store.options import options_as_json
from graphcredit.store.parquet.er_graph import merge_er_graph, read_er_graph
from graphcredit.store.schema import STEP_SCHEMA
from graphcredit.store.sql.catalog import Connection, connect

LISTS: tuple[str, ...] = ("exact", "none", "constant")
"""What is logged of the admissible actions: their list, nothing, or in every state the same."""

PARTS: Mapping[str, str] = {"advantage": "total", "step_advantage": "step", "progress": "step"}
"""Judged columns: the advantage that a trainer uses, and its step part alone, or the progress."""

STATISTICS: tuple[str, ...] = ("over_all", "over_failed", "sign_agreement", "silent_share")
"""Fields of `Agreement`."""

_STEPS = """
    SELECT steps.* REPLACE (
        regexp_replace(trajectory_id, '\\.[0-9]+$', '') AS trajectory_id,
        make_timestamp((rollout * 3600 + step_index) * 1000000) AT TIME ZONE 'UTC' AS logged_at
    )
    FROM (
        SELECT steps.*,
            regexp_extract(trajectory_id, ':([0-9]+)(\\.[0-9]+)?$', 1)::BIGINT AS rollout
        FROM steps JOIN trajectories USING (run_id, iteration, trajectory_id)
        WHERE is_complete
    ) AS steps
    ORDER BY task_id, rollout, step_index
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """What is judged."""

    log: Path
    """Store of the played games."""
    world: str
    """One of `WORLDS`."""
    lists: str
    """One of `LISTS`."""
    games: tuple[str, ...]
    """Games whose steps are judged; none for all that were played."""

    @property
    def name(self) -> str:
        """Name of its file of rows."""
        return f"{self.world}-{self.lists}"

    @property
    def run_id(self) -> str:
        """Run of the log that has its steps."""
        return f"{self.world}-oracle-{WORLDS[self.world].epsilon:g}"


def estimators_of(world: str) -> dict[str, Assigner]:
    """Return the judged estimators: all whose inputs the world has. Questions have entities."""
    has_entities = world == "search"
    return configure(row.name for row in ESTIMATORS if has_entities or MENTIONS not in row.inputs)


def made_by(condition: Condition) -> str:
    """Return all that determines a condition's rows but the code."""
    estimators = estimators_of(condition.world)
    options = {name: options_as_json(chosen) for name, chosen in estimators.items()}
    of_condition = asdict(condition) | {"log": ""}
    return json.dumps({"condition": of_condition, "estimators": options}, sort_keys=True)


def judge(condition: Condition) -> pl.DataFrame:
    """Return the rows of a condition, always the same to the last bit."""
    estimators = estimators_of(condition.world)
    with tempfile.TemporaryDirectory() as folder:
        store = write_steps(condition, Path(folder) / "store")
        assign_credit(store, CreditSettings(estimators=estimators), iteration=ITERATION)
        with connect(store, iteration=ITERATION) as connection:
            rows = [row for name in estimators for row in _rows(connection, name)]
    of_condition = {"environment": condition.world, "lists": condition.lists}
    table = pl.DataFrame(
        [of_condition | row for row in rows], schema_overrides=dict.fromkeys(STATISTICS, pl.Float64)
    )
    # The last digits of a sum depend on the order of the threads.
    return table.with_columns(pl.col(STATISTICS).round(12))


def _rows(connection: Connection, estimator: str) -> list[dict[str, Any]]:
    written = estimator_named(estimator).writes
    return [
        {
            "game": of_game.task_id.partition("-")[2],
            "estimator": estimator,
            "part": part,
            "num_steps": of_game.num_steps,
            "num_failed_steps": of_game.num_failed_steps,
            **{name: getattr(of_game, name) for name in STATISTICS},
        }
        for column, part in PARTS.items()
        if column in written
        for of_game in agreements(connection, f"{estimator}_{column}")
    ]


def write_steps(condition: Condition, root: Path) -> Store:
    """Write the steps of a condition to a new store; see `steps_of`."""
    store = create_store(root)
    write_table(
        steps_of(condition), store.steps_dir(condition.run_id, ITERATION) / "log-000000.parquet"
    )
    if condition.world == "search":
        merge_er_graph(store, read_er_graph(Store(condition.log)))
    return store


def steps_of(condition: Condition) -> pa.Table:
    """Return the steps of a condition.

    A restarted rollout keeps its number. Times are replaced, so that the first rollouts of all
    games end before the second ones. So nothing depends on when and where the log was played.
    """
    with connect(Store(condition.log), run_id=condition.run_id, iteration=ITERATION) as connection:
        rows = connection.sql(_STEPS).to_arrow_table()
    # The view leaves images out; no game here has any.
    fields = [field for field in STEP_SCHEMA if field.name in rows.column_names]
    schema = pa.schema(fields, metadata=STEP_SCHEMA.metadata)
    if condition.games:
        wanted = {f"{condition.world}-{game}" for game in condition.games}
        rows = rows.filter(pa.array([task in wanted for task in rows["task_id"].to_pylist()]))
    return _with_lists(rows.select(schema.names).cast(schema), condition.lists)


def _with_lists(steps: pa.Table, lists: str) -> pa.Table:
    """Return steps with other lists of admissible actions; see `LISTS`."""
    column = steps.schema.get_field_index("admissible_actions")
    field = steps.field(column)
    if lists == "none":
        return steps.set_column(column, field, pa.nulls(len(steps), field.type))
    if lists == "constant":
        given: list[list[str] | None] = steps.column(column).to_pylist()
        every = sorted({action for actions in given for action in actions or ()})
        return steps.set_column(column, field, pa.array([every] * len(steps), field.type))
    return steps
