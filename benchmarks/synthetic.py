"""Writes a synthetic log: groups of 8 trajectories of 50 steps over about 40 states a task.

With admissible actions, each state lists all actions and one that only this state has, and its text
consists of words.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.store import create_store
from graphcredit.store.files.tables import write_table
from graphcredit.store.schema import STEP_SCHEMA

GROUP_SIZE, HORIZON, NUM_STATES, STATE_LENGTH, NUM_ACTIONS = 8, 50, 40, 300, 8
STEPS_PER_GROUP = GROUP_SIZE * HORIZON
SHARD_GROUPS = 250
ADMISSIBLE = STEP_SCHEMA.field("admissible_actions").type
WORD_LENGTH = 7


def write_log(
    root: Path,
    num_steps: int,
    *,
    num_iterations: int = 1,
    is_plain: bool = False,
    has_admissible: bool = False,
) -> None:
    """Write a store of `num_steps` steps in each of `num_iterations` iterations.

    Args:
        root: Path of the store.
        num_steps: Steps of an iteration.
        num_iterations: Iterations of the one run.
        is_plain: Write with pyarrow's default settings, not with those of the store.
        has_admissible: Write admissible actions, and words in the states.
    """
    store = create_store(root)
    rng = np.random.default_rng(0)
    num_groups = max(1, num_steps // STEPS_PER_GROUP)
    for iteration in range(num_iterations):
        directory = store.steps_dir("r0", iteration)
        for number, first in enumerate(range(0, num_groups, SHARD_GROUPS)):
            groups = np.arange(first, min(first + SHARD_GROUPS, num_groups))
            directory.mkdir(parents=True, exist_ok=True)
            table = _shard(rng, groups, has_admissible=has_admissible)
            path = directory / f"w0-{number:06d}.parquet"
            if is_plain:
                pq.write_table(table.cast(STEP_SCHEMA), path)
            else:
                write_table(table, path)


def _shard(rng: np.random.Generator, groups: np.ndarray, *, has_admissible: bool) -> pa.Table:
    """Return random walks: each action of a state leads to one other state."""
    num_groups = len(groups)
    successors = rng.integers(0, NUM_STATES, (num_groups, NUM_STATES, NUM_ACTIONS))
    walk = np.zeros((num_groups, GROUP_SIZE, HORIZON + 1), np.int64)
    action = np.minimum(rng.geometric(0.4, (num_groups, GROUP_SIZE, HORIZON)) - 1, NUM_ACTIONS - 1)
    rows = np.arange(num_groups)[:, None]
    for t in range(HORIZON):
        walk[:, :, t + 1] = successors[rows, walk[:, :, t], action[:, :, t]]
    num_rows = num_groups * STEPS_PER_GROUP
    group = np.repeat(np.arange(num_groups), STEPS_PER_GROUP)
    states = _texts(rng, num_groups * NUM_STATES, STATE_LENGTH)
    tasks = pa.array([f"task-{g}" for g in groups])
    names = pa.array([f"task-{g}-{i}" for g in groups for i in range(GROUP_SIZE)])
    is_last = np.tile(np.arange(HORIZON) == HORIZON - 1, num_groups * GROUP_SIZE)
    success = rng.random(num_rows) < 0.4
    is_valid = rng.random(num_rows) < 0.95
    actions = [f"action {i}" for i in range(NUM_ACTIONS)]
    admissible = pa.nulls(num_rows, ADMISSIBLE)
    if has_admissible:
        states[:, ::WORD_LENGTH] = ord(" ")
        lists = pa.array([[*actions, f"look at {n}"] for n in range(NUM_STATES)], ADMISSIBLE)
        admissible = lists.take(pa.array(walk[:, :, :-1].ravel()))
    columns = {
        "task_id": _pick(tasks, group),
        "trajectory_id": _pick(names, np.repeat(np.arange(num_groups * GROUP_SIZE), HORIZON)),
        "step_index": pa.array(np.tile(np.arange(HORIZON), num_groups * GROUP_SIZE), pa.int32()),
        "state": _pick(_strings(states), group * NUM_STATES + walk[:, :, :-1].ravel()),
        "next_state": _pick(_strings(states), group * NUM_STATES + walk[:, :, 1:].ravel()),
        "action": _pick(pa.array(actions), action.ravel()),
        "admissible_actions": admissible,
        "is_action_valid": pa.array(is_valid),
        "reward": pa.array(np.where(is_last & success, 10.0, np.where(is_valid, 0.0, -0.1))),
        "cost": pa.array(np.ones(num_rows)),
        "terminated": pa.array(is_last & success),
        "truncated": pa.array(is_last & ~success),
        "success": pa.array(success, mask=~is_last),
        "worker_id": pa.repeat("w0", num_rows),
        "logged_at": pa.array(np.arange(num_rows) * 1000, pa.timestamp("us", "UTC")),
    }
    nulls = {f.name: pa.nulls(num_rows, f.type) for f in STEP_SCHEMA if f.name not in columns}
    table = pa.table({name: (columns | nulls)[name] for name in STEP_SCHEMA.names})
    return table.replace_schema_metadata(STEP_SCHEMA.metadata)


def _texts(rng: np.random.Generator, count: int, length: int) -> np.ndarray:
    """Return [count, length] random letters."""
    return rng.integers(97, 123, (count, length), np.uint8)


def _strings(texts: np.ndarray) -> pa.Array:
    """Return the rows of [count, length] ASCII codes as strings."""
    count, length = texts.shape
    ends = pa.array(np.arange(0, (count + 1) * length, length), pa.int32())
    return pa.StringArray.from_buffers(count, ends.buffers()[1], pa.py_buffer(texts.tobytes()))


def _pick(values: pa.Array, code: np.ndarray) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), values)
