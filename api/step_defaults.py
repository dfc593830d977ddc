"""Columns of steps that follow from the others, for logs that do not have them."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.errors import SchemaError
from graphcredit.store.parquet.shards import step_columns
from graphcredit.store.schema import PARTITION_COLUMNS

if TYPE_CHECKING:
    import polars as pl

NEEDED = ("task_id", "trajectory_id", "state", "action", "reward", "success")
"""Columns that nothing else says."""

DEFAULTS: Mapping[str, str] = {
    "step_index": "the order of the rows of the rollout",
    "next_state": "the state of the next step; at the last step, its own state",
    "is_action_valid": "true",
    "cost": "1",
    "terminated": "the last step of a rollout that succeeded",
    "truncated": "the last step of the others",
}
"""Column to its default. `success` may be on every row: false counts on the last one alone, and so
does true without `terminated` and `truncated`."""


def with_defaults(steps: pa.Table) -> pa.Table:
    """Return steps with every column that credit is always made of.

    Args:
        steps: Rows of each trajectory in order, or with their `step_index`.

    Raises:
        SchemaError: A column without a default is missing, a row has no name, or `success` is no
            verdict.
    """
    _check(steps)
    missing = DEFAULTS.keys() - set(steps.column_names)
    has_failures = bool(pc.any(pc.invert(steps["success"].cast(pa.bool_()))).as_py())
    if not missing and not has_failures:
        return steps
    import polars as pl  # here: most tables need no default, and it takes a while

    partitions = [c.name for c in PARTITION_COLUMNS if c.name in steps.column_names]
    trajectory = [*partitions, "trajectory_id"]
    frame = cast("pl.DataFrame", pl.from_arrow(steps))
    if "step_index" in missing:
        frame = frame.with_columns(
            step_index=pl.int_range(pl.len(), dtype=pl.Int32).over(trajectory)
        )
    is_last = pl.col("step_index") == pl.col("step_index").max().over(trajectory)
    following = pl.col("state").shift(-1).over(trajectory, order_by="step_index")
    values = {
        "next_state": pl.when(is_last).then("state").otherwise(following),
        "is_action_valid": pl.lit(True),
        "cost": pl.lit(1.0),
    } | _ends(missing, is_last)
    frame = frame.with_columns(**{name: v for name, v in values.items() if name in missing})
    is_verdict = is_last
    if not missing >= {"terminated", "truncated"}:
        is_verdict |= pl.col("success")  # before the end it is a fault, which credit names
    return frame.with_columns(success=pl.when(is_verdict).then("success")).to_arrow()


def _ends(missing: set[str], is_last: "pl.Expr") -> "dict[str, pl.Expr]":
    """Return how trajectories end, by column."""
    import polars as pl

    if missing >= {"terminated", "truncated"}:
        won = pl.col("success").cast(pl.Boolean)
        return {
            "terminated": (is_last & won).fill_null(False),
            "truncated": (is_last & ~won).fill_null(False),
        }
    return {
        "terminated": is_last & ~pl.col("truncated") if "terminated" in missing else pl.lit(False),
        "truncated": is_last & ~pl.col("terminated") if "truncated" in missing else pl.lit(False),
    }


def _check(steps: pa.Table) -> None:
    missing = [name for name in NEEDED if name not in steps.column_names]
    if missing:
        listed = "; ".join(f"{c.name} ({c.type}): {c.meaning}" for c in step_columns(missing))
        raise SchemaError(
            f"a table of steps must have {', '.join(NEEDED)}: found "
            f"{', '.join(steps.column_names) or 'no columns of steps'}. Missing: {listed}. "
            f"{', '.join(DEFAULTS)} follow from these where they are missing"
        )
    for name in {"task_id", "trajectory_id", "step_index"} & set(steps.column_names):
        if steps[name].null_count:
            row = pc.index(pc.is_null(steps[name]), True).as_py()
            raise SchemaError(
                f"{name} must not be null: it is in row {row} (from 0), and in "
                f"{steps[name].null_count:,} of all. Fill it, or leave these rows out"
            )
    success = steps["success"]
    is_verdict = pa.types.is_boolean(success.type) or success.null_count == len(success)
    if not is_verdict:
        row = pc.index(pc.is_valid(success), True).as_py()
        raise SchemaError(
            f"success must be true, false or null: row {row} (from 0) has "
            f"{success[row].as_py()!r}, of type {success.type}. A number is a score, and you say "
            "from where on it is a success: `steps.success >= 1` makes a verdict of it. The score "
            "itself belongs into reward, which estimators of returns use"
        )
