"""The columns of the views that are computed: what they mean, for the reference and for tests."""

from collections.abc import Mapping

import pyarrow as pa

from graphcredit.store.schema import PARTITION_COLUMNS, Column


def _of(name: str, type_: pa.DataType, meaning: str, *, nullable: bool = False) -> Column:
    return Column(name=name, type=type_, meaning=meaning, nullable=nullable)


_STRING, _BOOL, _DOUBLE, _INT = pa.string(), pa.bool_(), pa.float64(), pa.int32()
_TIME = pa.timestamp("us", tz="UTC")
_TASK = _of("task_id", _STRING, "the task; with run and iteration, the group")

DERIVED_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "trajectories": (
        *PARTITION_COLUMNS,
        _TASK,
        _of("trajectory_id", _STRING, "the rollout"),
        _of("num_steps", _INT, "steps that were logged"),
        _of("return", _DOUBLE, "sum of its rewards"),
        _of("success", _BOOL, "outcome of its last step", nullable=True),
        _of("is_complete", _BOOL, "whether it gets credit: all steps, one end, an outcome"),
        _of("terminated", _BOOL, "whether the task ended it", nullable=True),
        _of("truncated", _BOOL, "whether it was cut off", nullable=True),
        _of("first_logged_at", _TIME, "when its first step was logged", nullable=True),
        _of("last_logged_at", _TIME, "when its last step was logged", nullable=True),
    ),
    "groups": (
        *PARTITION_COLUMNS,
        _TASK,
        _of("num_trajectories", _INT, "complete rollouts"),
        _of("num_incomplete", _INT, "others: kept, without credit"),
        _of("success_rate", _DOUBLE, "share of the complete ones that succeeded", nullable=True),
        _of("mean_return", _DOUBLE, "of the complete ones", nullable=True),
        _of("is_degenerate", _BOOL, "all returns are equal", nullable=True),
        _of("num_steps", pa.int64(), "steps of all its rollouts"),
    ),
    "credit_state": (
        *PARTITION_COLUMNS,
        _of("estimator", _STRING, "whose columns"),
        _of("state", _STRING, "`current`, `stale`, `mixed` or `foreign`"),
        _of("reason", _STRING, "why it is not current", nullable=True),
    ),
}
"""View to its columns, in order."""
