"""Small worlds: steps, trajectories and stores written by hand with bare pyarrow."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store import Store, create_store
from graphcredit.store.schema import STEP_SCHEMA

START = datetime(2026, 1, 1, tzinfo=UTC)

_DEFAULTS: dict[str, Any] = {
    "task_id": "t0",
    "step_index": 0,
    "action": "a",
    "is_action_valid": True,
    "reward": 0.0,
    "cost": 1.0,
    "terminated": False,
    "truncated": False,
    "success": None,
    "worker_id": "w0",
}


def step_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return steps with the schema's columns; what a row leaves out has a harmless default."""
    full = [
        dict.fromkeys(STEP_SCHEMA.names)
        | _DEFAULTS
        | {"logged_at": START + timedelta(seconds=number)}
        | dict(row)
        for number, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(full, schema=STEP_SCHEMA)


def trajectory(
    name: str,
    path: str | list[str],
    *,
    rewards: list[float] | None = None,
    success: bool | None = False,
    invalid: tuple[int, ...] = (),
    **columns: Any,
) -> list[dict[str, Any]]:
    """Return the steps of one trajectory.

    Args:
        name: The trajectory id.
        path: States and actions in turn, `"A a B b C"`: from A by action a to B, and so on.
        rewards: One per step; 0 by default.
        success: On the last step; None leaves the trajectory without an end.
        invalid: Step indices whose action was not valid.
        columns: Values that all steps share, for example `task_id`.
    """
    words = path.split() if isinstance(path, str) else path
    length = len(words) // 2
    steps = [
        {
            "trajectory_id": name,
            "step_index": index,
            "state": words[2 * index],
            "action": words[2 * index + 1],
            "next_state": words[2 * index + 2],
            "reward": rewards[index] if rewards else 0.0,
            "is_action_valid": index not in invalid,
            **columns,
        }
        for index in range(length)
    ]
    if success is not None:
        steps[-1] |= {"success": success, "terminated": success, "truncated": not success}
    return steps


def worked_example(task_id: str = "t0") -> list[dict[str, Any]]:
    """Return the worked example: a detour that wins, a shortcut that errs, a bad start.

    Its trajectories are x, y and z; those of a task other than t0 have its name before theirs.
    """
    x, y, z = (name if task_id == "t0" else f"{task_id}-{name}" for name in "xyz")
    return [
        *trajectory(x, "A a B b A c C d won", rewards=[0, 0, 0, 10], success=True, task_id=task_id),
        *trajectory(y, "A c C e D", task_id=task_id),
        *trajectory(z, "A q A a B", rewards=[-0.1, 0], invalid=(0,), task_id=task_id),
    ]


def write_store(
    root: Path, *shards: Iterable[Mapping[str, Any]], run_id: str = "r0", iteration: int = 0
) -> Store:
    """Write each list of steps as one shard, the way a foreign program would."""
    store = create_store(root)
    directory = store.steps_dir(run_id, iteration)
    directory.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(shards):
        pq.write_table(step_table(rows), directory / f"w{number}-000000.parquet")
    return store
