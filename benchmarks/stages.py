"""Times an iteration of a loop in one process against the same iteration as three commands.

    python -m benchmarks.stages [--tasks 8]

The benchmark runs a loop of three iterations on easy TextWorld games, from a kept warm policy. In
the last iteration everything is loaded and the games are cached. `collect`, `credit` and `train`
then repeat that iteration, each in a process that loads its own inputs; they must produce the same
steps. Their optimizer starts afresh, because the loop keeps only the newest optimizer state.
Seconds are CPU seconds, with one thread of arithmetic.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.machine import describe
from experiments.textworld.warm import KEPT_WARM
from graphcredit.store import open_store, read_steps

ITERATIONS = 3
TRAIN = {
    "learning_rate": 3e-4,
    "beta2": 0.98,
    "kl_coefficient": 0.02,
    "correction": "bypass",
    "batch_size": 320,
    "max_tokens": 4096,
}
COLLECT = {
    "env": "textworld",
    "games": "custom-r5o5q5b1n1",
    "group_size": 8,
    "max_steps": 20,
    "template": "tiny",
    "max_new_tokens": 14,
    "workers": 0,
}


def main() -> None:
    """Print the seconds of each way, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=8)
    tasks = parser.parse_args().tasks
    os.environ["OMP_NUM_THREADS"] = "1"
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        line = loop(Path(folder), tasks)
        policies, last = Path(folder) / "policies", ITERATIONS - 1
        by_hand = commands(Path(folder) / "by-hand", policies, tasks, last)
        stores = [Path(folder) / "store", Path(folder) / "by-hand" / "store"]
        one, other = (_actions(store, last) for store in stores)
        assert one == other, "both must play the same"
    print(f"{len(one):,} steps")
    print(f"{'one process':>14} {line['cpu_seconds']:>6.1f} s")
    for name, seconds in by_hand.items():
        print(f"{name:>14} {seconds:>6.1f} s")
    total = sum(by_hand.values())
    print(f"{'all three':>14} {total:>6.1f} s, {total / line['cpu_seconds']:.1f} times as much")


def loop(out: Path, tasks: int) -> dict[str, float]:
    """Run a loop in its own process; return the log line of its last iteration."""
    tables = {"collect": {**COLLECT, "tasks": tasks}, "train": TRAIN}
    head = {"out": str(out), "model": str(KEPT_WARM / "general-0"), "iterations": ITERATIONS}
    config = out / "loop.toml"
    parts = [_toml(head), *(f"[{name}]\n{_toml(table)}" for name, table in tables.items())]
    config.write_text("\n".join(parts), encoding="utf-8")
    _run("loop", config)
    return json.loads((out / "loop.jsonl").read_text(encoding="utf-8").splitlines()[-1])


def commands(folder: Path, policies: Path, tasks: int, iteration: int) -> dict[str, float]:
    """Repeat an iteration as three commands; return the seconds of each command."""
    store = folder / "store"
    before = policies / f"policy-{iteration:06d}"
    options = {
        **COLLECT,
        "tasks": tasks,
        "policy": f"hf:{before / 'model'}",
        "iteration": iteration,
    }
    flags = [part for name, value in options.items() for part in (_flag(name), str(value))]
    config = folder / "train.toml"
    folder.mkdir()
    reference = {"reference": str(KEPT_WARM / "general-0")}
    config.write_text(_toml({**TRAIN, **reference}), encoding="utf-8")
    train = ["--config", config, "--model", before / "model", "--advantage", "graphgpo"]
    return {
        "collect": _run("collect", store, *flags),
        "credit": _run("credit", store, "-e", "graphgpo"),
        "train": _run("train", store, *train, "--out", folder / "policy"),
    }


def _run(*command: str | Path) -> float:
    """Run a command of graphcredit; return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = [sys.executable, "-m", "graphcredit.cli.main"]
    subprocess.run([*program, *map(str, command)], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _actions(store: Path, iteration: int) -> dict[tuple[str, int], str]:
    columns = ["trajectory_id", "step_index", "action"]
    tables = read_steps(open_store(store), columns=columns, iteration=iteration)
    rows = [row for table in tables for row in table.to_pylist()]
    return {(row["trajectory_id"], row["step_index"]): row["action"] for row in rows}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _toml(table: Mapping[str, object]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())


if __name__ == "__main__":
    main()
