"""The summary of a batch: a row per trajectory, and one per trajectory and estimator.

They are sums over what the credit shards say step by step, for those who list trajectories and
groups and would otherwise read all steps.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphcredit.credit.iteration.assemble import Assembly
from graphcredit.credit.iteration.columns import Columns
from graphcredit.credit.steps.arrays import Bools, Floats, Ints
from graphcredit.store.parquet.numbers import arrow_of, repeat_text
from graphcredit.store.schema import (
    BARS_PER_SIDE,
    NUM_BARS,
    SUMMARY_ADVANTAGE_COLUMNS,
    SUMMARY_TRAJECTORY_COLUMNS,
    arrow_schema,
    split_estimator_column,
)

_TRAJECTORIES = arrow_schema(SUMMARY_TRAJECTORY_COLUMNS)
_ADVANTAGES = arrow_schema(SUMMARY_ADVANTAGE_COLUMNS)


def trajectory_rows(assembly: Assembly, table: pa.Table, credit: Columns) -> pa.Table:
    """Return a row for each trajectory of a batch, the incomplete ones last.

    Args:
        assembly: The batch.
        table: The steps that it was made of.
        credit: `{column: [num_steps] values}`; NaN where an earlier run left no credit.
    """
    steps = assembly.steps
    first, last = steps.trajectory_start[:-1], steps.trajectory_start[1:] - 1
    columns = {
        "task_id": steps.task_texts.take(arrow_of(steps.task[first])),
        "trajectory_id": _names(assembly, table),
        "num_steps": arrow_of(last - first + 1),
        "num_invalid": arrow_of(_sums(~steps.is_action_valid, first)),
        "return": arrow_of(_sums(steps.reward, first)),
        "success": arrow_of(steps.is_success[last], is_null=~steps.is_judged[last]),
        "is_complete": arrow_of(np.ones(len(first), bool)),
        "num_alone": arrow_of(_sums(credit["state_group_size"] == 1, first)),
        "num_disagreeing": arrow_of(_sums(_is_disputed(credit, len(steps.row)), first)),
    }
    complete = _table(columns, _TRAJECTORIES)
    is_left_out = np.ones(table.num_rows, bool)
    is_left_out[steps.row] = False
    if not is_left_out.any():
        return complete
    return pa.concat_tables([complete, _incomplete(table.filter(arrow_of(is_left_out)))])


def advantage_rows(assembly: Assembly, table: pa.Table, credit: Columns) -> list[pa.Table]:
    """Return a table for each estimator, with a row for each complete trajectory of a batch.

    For the arguments see `trajectory_rows`.
    """
    if not len(assembly.steps.row):
        return [_ADVANTAGES.empty_table()]
    names = _names(assembly, table)
    return [
        _advantages(names, assembly.steps.trajectory_start, estimator, credit[column])
        for column, estimator in _advantage_columns(credit).items()
    ]


def _advantages(
    names: pa.Array, start: Ints, estimator: str, advantage: NDArray[np.generic]
) -> pa.Table:
    values = advantage.astype(np.float64)
    first, lengths = start[:-1], np.diff(start)
    # Columns that are kept may be another program's, whose infinite numbers count as none.
    is_known = np.isfinite(values)
    values[~is_known] = np.nan
    known = np.where(is_known, values, 0.0)
    most, least = np.fmax.reduceat(values, first), np.fmin.reduceat(values, first)
    scale = _scale(np.fmax(np.abs(most), np.abs(least)))
    columns = {
        "trajectory_id": names,
        "estimator": repeat_text(estimator, len(names)),
        "num_steps": arrow_of(_sums(is_known, first)),
        "total": arrow_of(_sums(known, first)),
        "squares": arrow_of(_sums(known * known, first)),
        "most": arrow_of(most),
        "least": arrow_of(least),
        "scale": arrow_of(scale),
        "bars": _bars(known, is_known, np.repeat(scale, lengths), lengths),
    }
    return _table(columns, _ADVANTAGES)


def _bars(values: Floats, is_known: Bools, scale: Floats, lengths: Ints) -> pa.Array:
    """Return the histogram of each trajectory; `scale` is [num_steps]. The quotients are exact."""
    size = np.abs(values) * BARS_PER_SIDE / np.where(scale > 0, scale, 1.0)
    bar = (np.sign(values) * np.ceil(size)).astype(np.int64) + BARS_PER_SIDE
    slot = np.repeat(np.arange(len(lengths)), lengths) * NUM_BARS + bar
    counts = np.bincount(slot[is_known], minlength=len(lengths) * NUM_BARS)
    ends = np.arange(len(lengths) + 1) * NUM_BARS
    return pa.ListArray.from_arrays(arrow_of(ends, pa.int32()), arrow_of(counts, pa.int32()))


def _scale(largest: Floats) -> Floats:
    """Return the least power of two that each number does not exceed; 0 for 0 and for NaN."""
    fraction, exponent = np.frexp(np.nan_to_num(largest))
    power = np.ldexp(1.0, exponent - (fraction == 0.5))
    return np.where(fraction > 0, power, 0.0)


def _is_disputed(credit: Columns, num_steps: int) -> Bools:
    """Return [num_steps] whether one estimator credits a step and another one blames it."""
    is_credited, is_blamed = np.zeros(num_steps, bool), np.zeros(num_steps, bool)
    for column in _advantage_columns(credit):
        values = credit[column].astype(np.float32)
        is_credited |= values > 0
        is_blamed |= values < 0
    return is_credited & is_blamed


def _advantage_columns(credit: Columns) -> dict[str, str]:
    """Return the columns of advantages, and whose they are."""
    splits = {name: split_estimator_column(name) for name in credit}
    return {name: of[0] for name, of in splits.items() if of and of[1] == "advantage"}


def _incomplete(table: pa.Table) -> pa.Table:
    steps = pa.table(
        {
            "task_id": table["task_id"].cast(pa.string()),
            "trajectory_id": table["trajectory_id"].cast(pa.string()),
            "is_invalid": pc.invert(table["is_action_valid"]).cast(pa.int32()),
            "reward": table["reward"],
            "success": table["success"],
        }
    )
    rows = steps.group_by(["task_id", "trajectory_id"], use_threads=False).aggregate(
        [([], "count_all"), ("is_invalid", "sum"), ("reward", "sum"), ("success", "any")]
    )
    columns = {
        "task_id": rows["task_id"],
        "trajectory_id": rows["trajectory_id"],
        "num_steps": rows["count_all"],
        "num_invalid": pc.fill_null(rows["is_invalid_sum"], 0),
        "return": rows["reward_sum"],
        "success": rows["success_any"],
        "is_complete": arrow_of(np.zeros(rows.num_rows, bool)),
    }
    nulls = pa.nulls(rows.num_rows)
    return _table({name: columns.get(name, nulls) for name in _TRAJECTORIES.names}, _TRAJECTORIES)


def _names(assembly: Assembly, table: pa.Table) -> pa.Array:
    """Return the name of each complete trajectory."""
    first = assembly.steps.row[assembly.steps.trajectory_start[:-1]]
    names = table["trajectory_id"].take(arrow_of(first)).cast(pa.string())
    return names.combine_chunks()


def _sums(values: NDArray[np.generic], first: Ints) -> NDArray[np.generic]:
    """Return the sum of each trajectory; what is counted is counted as integers."""
    dtype = np.int64 if values.dtype == np.bool_ else values.dtype
    return np.add.reduceat(values, first, dtype=dtype) if len(first) else np.zeros(0, dtype)


def _table(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
