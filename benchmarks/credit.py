"""Times `graphcredit credit` against reading and writing the same columns.

    python -m benchmarks.credit [--steps 10000 100000 1000000] [--iterations 1] [--repeat 3]
                                [--estimators grpo gigpo …]
                                [--noise metered] [--merge exact segments]

The floor reads the same step columns with pyarrow and writes as many float32 columns; its start-up
is not counted. The command's time includes its start-up. Each figure is the best of `--repeat`
runs. `--layout plain` writes the log with pyarrow's default settings, as another program would;
`--layout store` writes it as the recorder does (long dictionaries, zstd). With `reach`, the log has
admissible actions. `--noise`, a kind of benchmarks/noise/design.py, disturbs the text of each
visit, and `--merge` names the merges to time.
CPU seconds and peak memory are those of the command.
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path

from benchmarks.machine import describe, run_graphcredit, run_python
from benchmarks.noise.design import KINDS
from benchmarks.synthetic import write_log
from graphcredit.credit.estimators.table import configure, estimator_named
from graphcredit.credit.iteration.settings import CreditSettings

FIVE = ["grpo", "rloo", "gigpo", "rewardflow", "graphgpo"]
HEADER = (
    f"{'merge':>9} {'layout':>7} {'steps':>10} {'iterations':>10} {'floor s':>8} {'credit s':>9} "
    f"{'ratio':>6} {'CPU s':>7} {'peak MiB':>9}"
)

_FLOOR = """
import sys, time
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
store, target, columns, num_floats = sys.argv[1:]
rng = np.random.default_rng(0)
start = time.perf_counter()
for path in sorted(Path(store).glob("steps/*/*/*.parquet")):
    table = pq.ParquetFile(path).read(columns=columns.split(","))
    floats = rng.random((int(num_floats), table.num_rows), np.float32)
    out = pa.table({str(number): column for number, column in enumerate(floats)})
    how = {"compression": "zstd", "compression_level": 1, "use_dictionary": False}
    pq.write_table(out, Path(target) / f"{path.parent.name}-{path.name}", **how)
print(time.perf_counter() - start)
"""
"""The least time of any credit stage; it prints its seconds."""


def main() -> None:
    """Print a row for each combination of the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--iterations", type=int, nargs="+", default=[1])
    parser.add_argument("--layout", nargs="+", default=["plain", "store"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--estimators", nargs="+", default=FIVE)
    parser.add_argument("--noise", choices=KINDS)
    parser.add_argument("--merge", nargs="+", default=["exact"])
    options = parser.parse_args()
    print(describe())
    print(HEADER)
    for layout, steps, iterations in product(options.layout, options.steps, options.iterations):
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            write_log(
                store,
                steps,
                num_iterations=iterations,
                is_plain=layout == "plain",
                has_admissible="reach" in options.estimators,
                disturb=KINDS[options.noise] if options.noise else None,
            )
            for merge in options.merge:
                row = _measure(store, Path(folder), options, merge)
                print(f"{merge:>9} {layout:>7} {steps:>10,} {iterations:>10} {row}", flush=True)


def _measure(store: Path, scratch: Path, options: argparse.Namespace, merge: str) -> str:
    rows = [estimator_named(name) for name in options.estimators]
    num_floats = sum(len(row.columns) for row in rows)
    columns = CreditSettings(estimators=configure(options.estimators)).columns
    command = ["credit", store, "--merge", merge]
    command += [word for row in rows for word in ("--estimator", row.name)]
    floor = ["-c", _FLOOR, store, scratch, ",".join(columns), num_floats]
    runs = [(run_python(*floor), run_graphcredit(*command)) for _ in range(options.repeat)]
    floor_seconds = min(float(of_floor.printed) for of_floor, _ in runs)
    best = min((credit for _, credit in runs), key=lambda run: run.seconds)
    peak = max(credit.mebibytes for _, credit in runs)
    return (
        f"{floor_seconds:>8.2f} {best.seconds:>9.2f} {best.seconds / floor_seconds:>6.2f} "
        f"{best.cpu:>7.1f} {peak:>9.0f}"
    )


if __name__ == "__main__":
    main()
