"""Times the recorder against a floor that appends rows to a list and writes one Parquet file.

    python -m benchmarks.recorder --steps 20000 --repeats 3

A step has a state and a next state of 1 kB, a prompt of 500 tokens and a response of 100 with
log-probabilities, as numpy arrays. The recorder's time includes opening and closing it. `fsync` is
timed over a twentieth of the steps.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import describe
from graphcredit.collector import StepRecorder
from graphcredit.store.files.atomic import write_table
from graphcredit.store.schema import STEP_SCHEMA

PROMPT_TOKENS, RESPONSE_TOKENS, STATE_CHARACTERS, HORIZON = 500, 100, 1000, 50

Step = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    options = parser.parse_args()
    print(f"{describe()}, {options.steps} steps, best of {options.repeats}")
    print(f"{'how':<22}{'seconds':>9}{'steps/s':>10}{'x floor':>9}")
    steps = _steps(options.steps)
    few = steps[: len(steps) // 20]
    floor = _best(_write_at_end, steps, options.repeats)
    ways = {
        "list, one Parquet": (floor, steps),
        "recorder, flush": (_best(_recorder("flush"), steps, options.repeats), steps),
        "recorder, fsync": (_best(_recorder("fsync"), few, options.repeats), few),
    }
    for how, (seconds, logged) in ways.items():
        ratio = seconds / floor * len(steps) / len(logged)
        print(f"{how:<22}{seconds:>9.2f}{len(logged) / seconds:>10,.0f}{ratio:>9.2f}")


def _steps(num_steps: int) -> list[Step]:
    letters, ids = random.Random(0), np.random.default_rng(0)
    words = [f"word{number} " for number in range(3000)]
    states = [
        "".join(letters.choices(words, k=150))[:STATE_CHARACTERS] for _ in range(num_steps + 1)
    ]
    return [
        {
            "state": states[number],
            "action": f"go {number % 7}",
            "next_state": states[number + 1],
            "reward": 0.0,
            "prompt_ids": ids.integers(0, 50_000, PROMPT_TOKENS, dtype=np.int32),
            "response_ids": ids.integers(0, 50_000, RESPONSE_TOKENS, dtype=np.int32),
            "response_logprobs": -ids.random(RESPONSE_TOKENS, dtype=np.float32),
        }
        for number in range(num_steps)
    ]


def _write_at_end(root: Path, steps: list[Step]) -> None:
    rows = [
        {
            **step,
            "task_id": "t0",
            "trajectory_id": f"t0-{number // HORIZON}",
            "step_index": number % HORIZON,
            "is_action_valid": True,
            "cost": 1.0,
            "terminated": number % HORIZON == HORIZON - 1,
            "truncated": False,
            "worker_id": "w0",
            "logged_at": time.time_ns() // 1000,
        }
        for number, step in enumerate(steps)
    ]
    write_table(pa.Table.from_pylist(rows, schema=STEP_SCHEMA), root / "steps.parquet")


def _recorder(durability: Any) -> Callable[[Path, list[Step]], None]:
    def record(root: Path, steps: list[Step]) -> None:
        with StepRecorder(
            root, run_id="r0", iteration=0, worker_id="w0", durability=durability
        ) as recorder:
            for start in range(0, len(steps), HORIZON):
                with recorder.trajectory(task_id="t0") as trajectory:
                    for step in steps[start : start + HORIZON]:
                        trajectory.log(**step)
                    trajectory.end(success=False)

    return record


def _best(run: Callable[[Path, list[Step]], None], steps: list[Step], repeats: int) -> float:
    seconds: list[float] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as root:
            start = time.perf_counter()
            run(Path(root), steps)
            seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
