"""Times `compute` on a table in memory: one to seven estimators, and the first call of a process.

    python -m benchmarks.compute --steps 6400 --repeat 20

Columns: the best and the median of the repeated calls; the time of a new process from its start to
the end of its first call, the imports of numpy and pyarrow included, on the clock and of the
processor; the fastest of five, after one that compiles the modules.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import describe, run_python
from benchmarks.synthetic import write_log
from graphcredit.credit import compute
from graphcredit.store import open_store

SEVEN = ("grpo", "rloo", "gigpo", "hgpo", "rewardflow", "g2po", "graphgpo")
HEADER = f"{'estimators':>10} {'best ms':>8} {'median ms':>9} {'process s':>9} {'CPU s':>6}"

_FIRST_CALL = """
import sys
import pyarrow.ipc
from graphcredit.credit import compute
steps = pyarrow.ipc.open_file(sys.argv[1]).read_all()
compute(steps, estimators=sys.argv[2])
"""


def main() -> None:
    """Print a row for the last one, the last three and all seven estimators."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6_400)
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    print(describe())
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        steps = _steps(Path(folder), arguments.steps)
        path = Path(folder) / "steps.arrow"
        with pa.ipc.new_file(str(path), steps.schema) as file:
            file.write_table(steps)
        for number in (1, 3, 7):
            names = ",".join(SEVEN[-number:])
            calls = [_call(steps, names) for _ in range(arguments.repeat)]
            best, median = (1e3 * value for value in (min(calls), statistics.median(calls)))
            runs = [run_python("-c", _FIRST_CALL, path, names) for _ in range(6)][1:]
            first = min(runs, key=lambda run: run.seconds)
            times = f"{best:>8.1f} {median:>9.1f} {first.seconds:>9.2f} {first.cpu:>6.2f}"
            print(f"{number:>10} {times}")


def _steps(folder: Path, num_steps: int) -> pa.Table:
    write_log(folder / "store", num_steps)
    (shard,) = open_store(folder / "store").shards()
    with pq.ParquetFile(shard.path) as file:
        return file.read()


def _call(steps: pa.Table, names: str) -> float:
    started = time.perf_counter()
    compute(steps, estimators=names)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
