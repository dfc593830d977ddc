"""Times `graphcredit credit` against reading and writing the same columns.

    python -m benchmarks.credit [--steps 10000 100000 1000000] [--iterations 1] [--repeat 3]
                                [--estimators grpo gigpo …] [--audit]
                                [--noise metered] [--merge exact segments]

The floor (benchmarks/floor.py) reads the same step columns with pyarrow and writes as many float32
columns; its start-up is not counted. The command's time includes its start-up. Each figure is the
best of `--repeat` runs. `--layout plain` writes the log with pyarrow's default settings, as another
program would; `--layout store` writes it as the recorder does (long dictionaries, zstd).
`--estimators all` times all estimators. With `sapo`, the log has thoughts and entities; with
`reach`, it has admissible actions. `--noise`, a kind of benchmarks/noise/design.py, disturbs the
text of each visit, and `--merge` names the merges to time. The command's final audit runs only with
`--audit`. CPU seconds and peak memory are those of the command.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import describe
from benchmarks.noise.design import KINDS
from benchmarks.synthetic import write_log
from graphcredit.credit.estimators.table import ESTIMATORS, configure, estimator_named
from graphcredit.credit.iteration.settings import CreditSettings

FIVE = ["grpo", "rloo", "gigpo", "rewardflow", "graphgpo"]
HEADER = (
    f"{'merge':>9} {'layout':>7} {'steps':>10} {'iterations':>10} {'floor s':>8} {'credit s':>9} "
    f"{'ratio':>6} {'CPU s':>7} {'peak MiB':>9}"
)


def main() -> None:
    """Print a row for each combination of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--iterations", type=int, nargs="+", default=[1])
    parser.add_argument("--layout", nargs="+", default=["plain", "store"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--estimators", nargs="+", default=FIVE)
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--noise", choices=KINDS)
    parser.add_argument("--merge", nargs="+", default=["exact"])
    arguments = parser.parse_args()
    if arguments.estimators == ["all"]:
        arguments.estimators = [row.name for row in ESTIMATORS]
    print(describe())
    print(HEADER)
    for layout in arguments.layout:
        for steps in arguments.steps:
            for iterations in arguments.iterations:
                with tempfile.TemporaryDirectory() as folder:
                    store = Path(folder) / "store"
                    is_plain = layout == "plain"
                    write_log(
                        store,
                        steps,
                        num_iterations=iterations,
                        is_plain=is_plain,
                        has_entities="sapo" in arguments.estimators,
                        has_admissible="reach" in arguments.estimators,
                        disturb=KINDS[arguments.noise] if arguments.noise else None,
                    )
                    for merge in arguments.merge:
                        row = _measure(store, Path(folder), arguments, merge)
                        name = f"{merge:>9} {layout:>7} {steps:>10,} {iterations:>10}"
                        print(f"{name} {row}", flush=True)


def _measure(store: Path, scratch: Path, arguments: argparse.Namespace, merge: str) -> str:
    rows = [estimator_named(name) for name in arguments.estimators]
    floats = sum(len(row.columns) for row in rows)
    columns = CreditSettings(estimators=configure(arguments.estimators)).columns
    floor = ["-m", "benchmarks.floor", store, scratch, ",".join(columns), floats]
    command = ["-m", "graphcredit.cli.main", "credit", store, "--merge", merge]
    command += [word for row in rows for word in ("--estimator", row.name)]
    command += [] if arguments.audit else ["--no-audit"]
    runs = [(_run(floor), _run(command)) for _ in range(arguments.repeat)]
    floor_s = min(float(of_floor.printed) for of_floor, _ in runs)
    best = min((credit for _, credit in runs), key=lambda run: run.seconds)
    peak = max(credit.mebibytes for _, credit in runs)
    return (
        f"{floor_s:>8.2f} {best.seconds:>9.2f} {best.seconds / floor_s:>6.2f} "
        f"{best.cpu:>7.1f} {peak:>9.0f}"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run of Python."""

    printed: str
    seconds: float
    cpu: float
    """CPU seconds of all threads."""
    mebibytes: float
    """Peak of resident memory."""


def _run(arguments: Sequence[object]) -> Run:
    """Run Python with arguments."""
    start = time.perf_counter()
    command = [sys.executable, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed with {process.returncode}")
    return Run(
        printed=printed,
        seconds=time.perf_counter() - start,
        cpu=usage.ru_utime + usage.ru_stime,
        mebibytes=usage.ru_maxrss / 1024,
    )


if __name__ == "__main__":
    main()
