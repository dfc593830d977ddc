"""Times the credit of one group with many states, and its peak of memory.

    python -m benchmarks.large_group [--states 5000 20000] [--estimators graphgpo reach] [--lists]

Eight trajectories walk on through rooms, each of which has three lamps, now and then back or to a
lamp; half of them win. Neighbours meet halfway through each other's rooms. With `--lists`, each
state lists its actions, so that `reach` compares states. Each estimator runs in a process of its
own, and the memory is what its credit adds to that of the process with the steps.
"""

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pyarrow as pa

from benchmarks.machine import describe
from graphcredit.credit import compute
from graphcredit.store.schema import STEP_SCHEMA

_GROUP_SIZE = 8


def main() -> None:
    """Print a row for each number of states and estimator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--estimators", nargs="+", default=["graphgpo", "reach"])
    parser.add_argument("--lists", action="store_true", help="log admissible actions")
    arguments = parser.parse_args()
    print(describe())
    print(f"{'states':>8} {'estimator':>10} {'seconds':>8} {'added MiB':>10}")
    for states in arguments.states:
        for name in arguments.estimators:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                number, seconds, added = pool.submit(
                    measure, states, name, arguments.lists
                ).result()
            print(f"{number:>8,} {name:>10} {seconds:>8.2f} {added:>10.0f}", flush=True)


def measure(num_states: int, estimator: str, has_lists: bool) -> tuple[int, float, float]:
    """Return the number of states, seconds, and the MiB that the peak of memory rose by."""
    table = group(num_states, has_lists=has_lists)
    before, started = _peak(), time.perf_counter()
    compute(table, estimators=[estimator], on_incomplete="raise")
    seconds, added = time.perf_counter() - started, _peak() - before
    return len(table["state"].unique()), seconds, added


def group(num_states: int, *, has_lists: bool, seed: int = 0) -> pa.Table:
    """Return the steps of one group that comes to about so many states."""
    rng = np.random.default_rng(seed)
    length = num_states // 5
    rows: list[dict[str, object]] = []
    for number in range(_GROUP_SIZE):
        room, lamps = number * length // 4, 0
        for index in range(length):
            state, possible = _text(room, lamps), _actions(room, lamps)
            move = int(rng.choice(3, p=[0.5, 0.1, 0.4]))
            room = max(room + (1, -1, 0)[move], 0)
            lamps ^= 1 << int(rng.integers(3)) if move == 2 else 0
            is_last = index == length - 1
            is_won = is_last and number % 2 == 0
            rows.append(
                {
                    "task_id": "t0",
                    "trajectory_id": f"{number}",
                    "step_index": index,
                    "state": state,
                    "next_state": _text(room, lamps),
                    "action": possible[move],
                    "admissible_actions": possible if has_lists else None,
                    "is_action_valid": True,
                    "reward": float(is_won),
                    "cost": 1.0,
                    "terminated": is_won,
                    "truncated": is_last and not is_won,
                    "success": is_won if is_last else None,
                }
            )
    schema = pa.schema([STEP_SCHEMA.field(name) for name in rows[0]])
    return pa.Table.from_pylist(rows, schema)


def _text(room: int, lamps: int) -> str:
    return f"You are in room {room} of wing {room % 97} and see lamps {lamps:03b}"


def _actions(room: int, lamps: int) -> list[str]:
    return ["go on", "go back", f"press a lamp of {lamps:03b}", f"open door {room % 97}"]


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
