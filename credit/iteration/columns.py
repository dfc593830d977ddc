"""The credit columns of a batch: what the graph says of each step, and every estimator's parts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.relative import has_spread
from graphcredit.credit.estimators.table import Assigner
from graphcredit.credit.iteration.assemble import Assembly
from graphcredit.credit.steps.arrays import shares
from graphcredit.store.errors import InputError
from graphcredit.store.parquet.numbers import arrow_of
from graphcredit.store.parquet.shards import conform, open_parquet
from graphcredit.store.schema import CREDIT_COLUMNS, CREDIT_KEY_COLUMNS

Columns: TypeAlias = Mapping[str, NDArray[np.generic]]
"""Name of a column to its values, [num_steps]."""

NULL_INT = -1
"""Stands for null in integer and boolean columns until they are written; NaN does in floats."""


def read_keys(path: Path, *, dictionaries: Sequence[str] = ()) -> pa.Table:
    """Return the columns that identify the rows of a step shard, or of a credit shard.

    Args:
        path: The shard.
        dictionaries: Names of those to leave as dictionaries.

    Raises:
        SchemaError: The shard cannot be read, or lacks one of them.
    """
    names = [column.name for column in CREDIT_KEY_COLUMNS]
    with open_parquet(path, dictionaries=dictionaries) as file:
        table = file.read(columns=names)
    return conform(table, CREDIT_KEY_COLUMNS, where=str(path), keep_dictionaries=bool(dictionaries))


def common_columns(assembly: Assembly) -> dict[str, NDArray[np.generic]]:
    """Return the columns that every credit shard has, but for its two keys. Each [num_steps]."""
    batch, steps = assembly.batch, assembly.steps
    state, target, group = batch.state_of_step, batch.target_of_step, batch.group_of_step
    distance = np.where(
        np.isfinite(batch.graph.goal_distance), batch.graph.goal_distance, np.nan
    ).astype(np.float32)
    size = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
    successes, judged = (
        np.bincount(batch.group_of_trajectory, each, batch.num_groups)
        for each in (batch.is_success, steps.is_judged[steps.trajectory_start[1:] - 1])
    )
    is_degenerate = ~has_spread(batch.episode_return, batch.group_of_trajectory, batch.num_groups)
    first_node = batch.node_start[:-1][group]
    return {
        "state_id": (state - first_node).astype(np.int32),
        "next_state_id": (target - first_node).astype(np.int32),
        "goal_distance": distance[state],
        "next_goal_distance": distance[target],
        "state_group_size": np.bincount(state).astype(np.int32)[state],
        "group_size": size.astype(np.int32)[group],
        "group_success_rate": shares(successes, judged).astype(np.float32)[group],
        "is_degenerate_group": is_degenerate.astype(np.int8)[group],
    }


def estimator_columns(
    batch: StepBatch, estimators: Mapping[str, Assigner]
) -> dict[str, NDArray[np.generic]]:
    """Return `<estimator>_<part>` columns of some estimators. Each [num_steps] float32.

    Raises:
        InputError: A number of an estimator is too large for its column.
    """
    columns: dict[str, NDArray[np.generic]] = {}
    for name, estimator in estimators.items():
        try:
            with np.errstate(over="raise"):
                parts = estimator.assign(batch)
                columns |= {f"{name}_{k}": v.astype(np.float32) for k, v in parts.items()}
        except FloatingPointError:
            raise _too_large(name, estimator, "its numbers overflow") from None
        for part, values in parts.items():
            if not np.isfinite(values).all():
                raise _too_large(name, estimator, f"a value of {name}_{part} is not finite")
    return columns


def _too_large(name: str, estimator: Assigner, problem: str) -> InputError:
    return InputError(
        f"the credit of {name} must be finite 32-bit numbers, but {problem}. Its options are "
        f"{estimator}: choose smaller ones, or a smaller penalty for invalid actions"
    )


def scatter(assembly: Assembly, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return [num_rows of the table] the values of its steps, null where a step has no credit."""
    if len(values) == assembly.num_rows:
        rows = np.empty(assembly.num_rows, values.dtype)
    else:
        rows = empty_column(values.dtype, assembly.num_rows)
    rows[assembly.steps.row] = values
    return rows


def empty_column(dtype: np.dtype[np.generic], length: int) -> NDArray[np.generic]:
    """Return a column of nulls."""
    return np.full(length, np.nan if dtype.kind == "f" else NULL_INT, dtype)


def to_arrow(name: str, values: NDArray[np.generic]) -> pa.Array:
    """Return a column as Arrow, with nulls where this module's stand-ins are."""
    if values.dtype.kind == "f":
        return arrow_of(values)
    return arrow_of(values, _TYPES[name], is_null=values == NULL_INT)


_TYPES = {column.name: column.type for column in CREDIT_COLUMNS}
