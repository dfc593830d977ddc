"""Times the estimators against plain Python loops, a common way to write step-level credit.

    python -m benchmarks.loops [--steps 4000 40000] [--repeat 3]

The loops are written in this file and work group by group and step by step. They scan all rows of
the log for each return, take a mean for each group of equal states, and sweep values over all edges
a thousand times. Both sides start from the same rows in memory. The estimators' time includes
encoding the text, building the graph and finding all distances. Before a time is printed, the
results of both sides are compared. Each time is the best of `--repeat`.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from benchmarks.machine import describe
from benchmarks.synthetic import write_log
from graphcredit.credit import compute
from graphcredit.store import open_store, read_steps

SWEEPS = 1000
EPSILON = 1e-6

Result = TypeVar("Result")


def main() -> None:
    """Print a row for each estimator and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[4_000, 40_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    print(describe())
    print(f"{'steps':>8} {'estimator':>11} {'loops s':>9} {'graphcredit s':>14} {'ratio':>7}")
    for steps in arguments.steps:
        with tempfile.TemporaryDirectory() as folder:
            write_log(Path(folder) / "store", steps)
            table = pa.concat_tables(read_steps(open_store(Path(folder) / "store")))
        rows = table.to_pylist()
        for name, loop in (("gigpo", gigpo), ("rewardflow", rewardflow)):
            slow, loops_s = _timed(partial(loop, rows), arguments.repeat)
            fast, ours_s = _timed(partial(compute, table, estimators=[name]), arguments.repeat)
            found = fast[f"{name}_advantage"].to_numpy()
            np.testing.assert_allclose(found, slow, rtol=1e-4, atol=1e-4)
            ratio = loops_s / ours_s
            print(
                f"{steps:>8,} {name:>11} {loops_s:>9.2f} {ours_s:>14.3f} {ratio:>7.0f}", flush=True
            )


def _timed(run: Callable[[], Result], repeat: int) -> tuple[Result, float]:
    """Return the result of `run`, and its least seconds."""
    seconds: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return run(), min(seconds)


def gigpo(rows: list[dict[str, Any]], gamma: float = 0.95) -> list[float]:
    """Compute GiGPO by loops that scan all rows for the trajectory of every row."""
    trajectory = np.array([row["trajectory_id"] for row in rows])
    reward = np.array([row["reward"] for row in rows])
    returns, episode = np.zeros(len(rows)), np.zeros(len(rows))
    for i, row in enumerate(rows):
        mine = np.where(trajectory == row["trajectory_id"])[0]
        after = mine[mine >= i]
        returns[i] = sum(gamma**k * reward[j] for k, j in enumerate(after))
        episode[i] = reward[mine].sum()
    of_trajectory = {row["trajectory_id"]: episode[i] for i, row in enumerate(rows)}
    return [
        a + b for a, b in zip(_episode(rows, of_trajectory), _state(rows, returns), strict=True)
    ]


def rewardflow(rows: list[dict[str, Any]], gamma: float = 0.9) -> list[float]:
    """Compute RewardFlow by loops that sweep a thousand times over the edges of every group."""
    reward = np.zeros(len(rows))
    by_task: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        by_task[row["task_id"]].append(i)
    for members in by_task.values():
        value: dict[Any, float] = defaultdict(float, {None: 1.0})
        edges = {
            (rows[i]["state"], _target(rows[i])): None
            for i in members
            if _is_valid(rows[i]) and rows[i]["state"] != _target(rows[i])
        }
        for _ in range(SWEEPS):
            for source, target in edges:
                value[source] = max(value[source], gamma * value[target])
        for i in members:
            gain = value[_target(rows[i])] - value[rows[i]["state"]]
            reward[i] = gain if _is_valid(rows[i]) else 0.0
    won = {row["trajectory_id"]: float(bool(row["success"])) for row in rows if _is_last(row)}
    return [a + b for a, b in zip(_episode(rows, won), _state(rows, reward), strict=True)]


def _is_last(row: dict[str, Any]) -> bool:
    return row["success"] is not None


def _is_valid(row: dict[str, Any]) -> bool:
    return row["is_action_valid"] or bool(row["success"])


def _target(row: dict[str, Any]) -> str | None:
    return None if row["success"] else row["next_state"]


def _relative(values: list[float]) -> list[float]:
    if len(values) == 1 or max(values) == min(values):
        return [0.0] * len(values)
    return list((np.array(values) - np.mean(values)) / (np.std(values, ddof=1) + EPSILON))


def _episode(rows: list[dict[str, Any]], of_trajectory: dict[str, float]) -> list[float]:
    names: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        names[row["task_id"]][row["trajectory_id"]] = of_trajectory[row["trajectory_id"]]
    found: dict[str, float] = {}
    for members in names.values():
        found |= dict(zip(members, _relative(list(members.values())), strict=True))
    return [found[row["trajectory_id"]] for row in rows]


def _state(rows: list[dict[str, Any]], values: np.ndarray) -> list[float]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[row["task_id"], row["state"]].append(i)
    found = [0.0] * len(rows)
    for members in groups.values():
        for i, value in zip(members, _relative([values[i] for i in members]), strict=True):
            found[i] = value
    return found


if __name__ == "__main__":
    main()
