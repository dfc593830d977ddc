"""Times the recorder against a floor that appends rows to a list and writes one Parquet file.

    python -m benchmarks.recorder --steps 20000 --repeats 3

A step has a state and a next state of 1 kB, a prompt of 500 tokens and a response of 100 with
log-probabilities. The recorder's time includes opening and closing it.
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
from graphcredit.store.files.tables import write_table
from graphcredit.store.schema import STEP_SCHEMA

PROMPT_TOKENS, RESPONSE_TOKENS, STATE_CHARACTERS, HORIZON = 500, 100, 1000, 50

Step = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3, help="show the best of so many runs")
    options = parser.parse_args()
    print(f"{describe()}, {options.steps} steps, best of {options.repeats}")
    print(f"{'tokens':<8}{'how':<22}{'seconds':>9}{'steps/s':>10}{'x floor':>9}")
    arrays = _steps(options.steps)
    for tokens, steps in (("numpy", arrays), ("list", [_with_lists(step) for step in arrays])):
        floor = _best(_write_at_end, steps, options.repeats)
        _row(tokens, "list, one Parquet", floor, floor, len(steps))
        for durability in ("flush", "fsync"):
            part = steps if durability == "flush" else steps[: len(steps) // 20]
            seconds = _best(_recorder(durability), part, options.repeats)
            _row(
                tokens,
                f"recorder, {durability}",
                seconds,
                floor * len(part) / len(steps),
                len(part),
            )


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


def _with_lists(step: Step) -> Step:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in step.items()}


def _write_at_end(root: Path, steps: list[Step]) -> None:
    rows: list[Step] = []
    for number, step in enumerate(steps):
        rows.append(
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
        )
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


def _row(tokens: str, how: str, seconds: float, floor: float, num_steps: int) -> None:
    rate = num_steps / seconds
    print(f"{tokens:<8}{how:<22}{seconds:>9.2f}{rate:>10,.0f}{seconds / floor:>9.2f}")


if __name__ == "__main__":
    main()
