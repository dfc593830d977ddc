"""A task whose state graph can have any size: random walks through a long maze."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.store import Store, create_store
from graphcredit.store.files.tables import write_table
from graphcredit.store.schema import STEP_SCHEMA
from graphcredit.store.sql.catalog import run_trusted_query


def write_maze(root: Path, num_states: int, num_walks: int = 96) -> Store:
    """Write a store of one task: walks through a long maze whose rooms have three doors each.

    Args:
        root: Where the store shall be.
        num_states: Rooms of the maze; the walks of a large one miss some of them.
        num_walks: Trajectories. Each may have enough steps for the way to the goal.
    """
    store, rng, horizon = create_store(root), np.random.default_rng(0), max(150, num_states // 10)
    steps = rng.integers(1, 40, (num_states, 3)) * rng.choice(
        [-1, 1], (num_states, 3), p=[0.1, 0.9]
    )
    doors = np.clip(np.arange(num_states)[:, None] + steps, 0, num_states)
    rows: list[dict[str, Any]] = []
    for walk in range(num_walks):
        room = 0
        for step in range(horizon):
            door = int(rng.integers(3))
            entered = int(doors[room, door])
            won, is_last = entered == num_states, entered == num_states or step == horizon - 1
            rows.append(
                dict.fromkeys(STEP_SCHEMA.names)
                | {
                    "task_id": "maze",
                    "trajectory_id": f"walk-{walk:02d}",
                    "step_index": step,
                    "state": f"-= Room {room} =-\nThree doors lead on.",
                    "next_state": f"-= Room {entered} =-\nThree doors lead on.",
                    "action": f"open door {door}",
                    "is_action_valid": True,
                    "reward": float(won),
                    "cost": 1.0,
                    "terminated": won,
                    "truncated": is_last and not won,
                    "success": won if is_last else None,
                    "worker_id": "w0",
                    "logged_at": len(rows),
                }
            )
            room = entered
            if is_last:
                break
    path = store.steps_dir("r0", 0) / "w0-000000.parquet"
    path.parent.mkdir(parents=True)
    write_table(pa.Table.from_pylist(rows, STEP_SCHEMA), path)
    return store


def size_of_graph(store: Store) -> str:
    """Return the number of states and transitions in the walks, as text."""
    sql = """
        SELECT (SELECT count(*) FROM nodes),
            (SELECT count(DISTINCT (state_id, next_state_id)) FROM edges)
    """
    states, transitions = run_trusted_query(store, sql).table.to_pylist()[0].values()
    return f"{states:,} states, {transitions:,} transitions"
