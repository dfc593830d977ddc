"""Run the experiment, or go on with it: warm starts, sweep, and the repeats of the tuned arms.

    python -m experiments.textworld.run --setting easy --out runs
    python -m experiments.textworld.run --setting easy --out runs --kept experiments/textworld/kept \
        --arms graphgpo --warm 0 --seed 1
    python -m experiments.textworld.run --quick --out quick

Every run is a loop of its own (`graphcredit loop`) in a folder of its own; what is done is not done
again, so it may be interrupted, and what `--kept` has is not done at all, unless it is asked for by
`--arms`, `--warm` or `--seed`. `--quick` is one run of few iterations; it fails unless success rises.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.textworld.curves import area, smoothed
from experiments.textworld.runs import Runs
from experiments.textworld.settings import (
    SETTINGS,
    Cell,
    Tuning,
    repeats,
    sweep,
    sweep_rates,
    warm_start,
)
from graphcredit.cli.loop_stages import run_loop
from graphcredit.cli.warmup_stages import Warmup, run_warmup
from graphcredit.collector.memo import Environments

QUICK_ITERATIONS = 8
_EPISODES = 1200
"""Random plays that a warm start imitates, over all games."""
_UPDATES = 600
"""Optimizer steps of a warm start."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kept", type=Path, help="directory of tables that report.py kept")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time, a core each")
    parser.add_argument("--arms", help="only these, by commas")
    parser.add_argument("--warm", type=int, help="only this warm start")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--quick", action="store_true", help="one run, minutes")
    options = parser.parse_args()
    if options.quick:
        sys.exit(_quick(options.out))
    runs = Runs(out=options.out, kept=options.kept)
    name = options.setting
    if SETTINGS[name].is_swept:
        _make(runs, sweep(name), options.workers)
        _make(runs, sweep_rates(name, tuned(runs, name)), options.workers)
    best = tuned(runs, name)
    for arm, (rate, kl) in best.items():
        print(f"{arm}: learning rate {rate:g}, KL coefficient {kl:g}", flush=True)
    wanted = {
        "arm": options.arms and options.arms.split(","),
        "warm": None if options.warm is None else [options.warm],
        "seed": None if options.seed is None else [options.seed],
    }
    chosen = {field: values for field, values in wanted.items() if values is not None}
    cells = [
        cell
        for cell in repeats(name, best)
        if all(getattr(cell, field) in values for field, values in chosen.items())
    ]
    _make(Runs(out=options.out) if chosen else runs, cells, options.workers)


def tuned(runs: Runs, setting: str) -> dict[str, Tuning]:
    """Return the learning rate and KL coefficient at which each arm learnt most in the sweep.

    Most is the mean success over the setting's budget of environment steps.
    """
    swept = setting if SETTINGS[setting].is_swept else "easy"
    best = _best(runs, sweep(swept), SETTINGS[swept].budget)
    return _best(runs, [*sweep(swept), *sweep_rates(swept, best)], SETTINGS[swept].budget)


def _best(runs: Runs, cells: Sequence[Cell], budget: int) -> dict[str, Tuning]:
    best: dict[str, tuple[float, Tuning]] = {}
    for cell in cells:
        run = runs.of(cell)
        if run is not None:
            learnt = area(run["env_steps"], run["success_rate"], budget)
            tuning = (cell.learning_rate, cell.kl_coefficient)
            if learnt > best.get(cell.arm, (-1.0, tuning))[0]:
                best[cell.arm] = (learnt, tuning)
    return {arm: tuning for arm, (_, tuning) in best.items()}


def _make(runs: Runs, cells: Sequence[Cell], num_workers: int) -> None:
    """Make the runs that are not done, after the warm starts that they need."""
    missing = [cell for cell in cells if runs.of(cell) is None]
    warm = sorted({(cell.setting, cell.warm) for cell in missing})
    _in_processes(_warm, [(runs.out, *which) for which in warm], num_workers)
    _in_processes(_run, [(runs.out, cell) for cell in missing], num_workers)


def _in_processes(do: Callable[[Any], None], tasks: Sequence[Any], count: int) -> None:
    """Do all tasks, each in a process with one thread, some at a time."""
    if not tasks:
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    with get_context("spawn").Pool(min(count, len(tasks))) as pool:
        for _ in pool.imap_unordered(do, tasks):
            pass


def _warm(task: tuple[Path, str, int]) -> None:
    """Make a warm policy; it has seen random play of the games that are learnt from."""
    out, name, number = task
    setting = SETTINGS[name]
    plan = Warmup(
        directory=warm_start(out, name, number),
        environment="textworld",
        games=setting.specs(setting.games),
        num_tasks=len(setting.games),
        num_episodes=_EPISODES // len(setting.games),
        max_steps=setting.max_steps,
        num_tokens=1024,
        num_updates=_UPDATES,
        template="tiny",
        seed=number,
        num_workers=0,
        games_dir=None,
    )
    run_warmup(plan, on_progress=lambda what, done, total: None)


_environments = Environments()
"""What the runs of this process saw: all play the same games."""


def _run(task: tuple[Path, Cell]) -> None:
    out, cell = task
    budget = SETTINGS[cell.setting].budget
    lines = _until(budget, run_loop(cell.config(out), environments=_environments))
    success = smoothed([line["success_rate"] for line in lines])
    # A run that is done is read, not continued; its log stays.
    shutil.rmtree(out / cell.name / "policies")
    print(
        f"{cell.name}: success {success[0]:.2f} to {success[-1]:.2f}, {len(lines)} iterations, "
        f"{lines[-1]['env_steps']:,} steps, {sum(line['cpu_seconds'] for line in lines):.0f} s",
        flush=True,
    )


def _until(budget: int, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines up to the one that reaches a budget of environment steps."""
    taken: list[dict[str, Any]] = []
    for line in lines:
        taken.append(line)
        if line["env_steps"] >= budget:
            break
    return taken


def _quick(out: Path) -> int:
    """Return 0 if one short run learns."""
    cell = Cell(
        setting="easy", arm="graphgpo", learning_rate=3e-4, kl_coefficient=0.02, warm=0, seed=0
    )
    started = time.perf_counter()
    _warm((out, "easy", 0))
    print(f"warm start: {time.perf_counter() - started:.0f} s")
    lines = list(islice(run_loop(cell.config(out)), QUICK_ITERATIONS))
    success = [line["success_rate"] for line in lines]
    first, last = success[0], float(smoothed(success)[-1])
    print(f"success {first:.3f} before, {last:.3f} after {lines[-1]['env_steps']:,} steps")
    print(f"{time.perf_counter() - started:.0f} s in all")
    return 0 if last > first + 0.1 else 1


if __name__ == "__main__":
    main()
