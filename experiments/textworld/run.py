"""Run the experiment, or go on with it: warm starts, sweep, and the repeats of the tuned arms.

    python -m experiments.textworld.run --setting easy --out results
    python -m experiments.textworld.run --quick --out quick

Every run is a loop of its own (`graphcredit loop`) in a folder of its own; what is done is not done
again, so it may be interrupted. `--quick` is one arm, one seed and few iterations, and fails unless
success rises.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.textworld.curves import area, read_runs, smoothed
from experiments.textworld.settings import (
    ARMS,
    SETTINGS,
    WARM_STARTS,
    Cell,
    repeats,
    sweep,
    warm_start,
)
from graphcredit.cli.loop_stages import run_loop
from graphcredit.cli.warmup_stages import Warmup, run_warmup

QUICK_ITERATIONS = 8
_EPISODES = 1200
"""Random plays that a warm start imitates, over all games."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2, help="runs at a time, a core each")
    parser.add_argument("--quick", action="store_true", help="one run, minutes")
    options = parser.parse_args()
    if options.quick:
        sys.exit(_quick(options.out))
    setting = options.setting
    _in_processes(_warm, [(options.out, setting, n) for n in range(WARM_STARTS)], options.workers)
    _in_processes(_run, [(options.out, cell) for cell in sweep(setting)], options.workers)
    best = tuned(options.out, setting)
    for arm, (rate, kl) in best.items():
        print(f"{arm}: learning rate {rate:g}, KL coefficient {kl:g}")
    cells = repeats(setting, best)
    _in_processes(_run, [(options.out, cell) for cell in cells], options.workers)


def tuned(out: Path, setting: str) -> dict[str, tuple[float, float]]:
    """Return the learning rate and KL coefficient at which each arm learnt most in the sweep.

    Most is the mean success over the setting's budget of environment steps.
    """
    runs = read_runs(out, sweep(setting))
    groups = runs.group_by("arm", "learning_rate", "kl_coefficient", maintain_order=True)
    curves = {
        key: (run["env_steps"].to_list(), run["success_rate"].to_list()) for key, run in groups
    }
    budget = SETTINGS[setting].budget
    best: dict[str, tuple[float, float]] = {}
    for arm in ARMS:
        own = {key[1:]: area(*curve, budget) for key, curve in curves.items() if key[0] == arm}
        rate, kl = max(own, key=own.__getitem__)
        best[arm] = (float(rate), float(kl))
    return best


def _quick(out: Path) -> int:
    """Return 0 if one short run learns."""
    cell = Cell(
        setting="easy", arm="graphgpo", learning_rate=3e-4, kl_coefficient=0.02, warm=0, seed=0
    )
    started = time.perf_counter()
    _warm((out, "easy", 0))
    print(f"warm start: {time.perf_counter() - started:.0f} s")
    lines = list(run_loop(cell.config(out, iterations=QUICK_ITERATIONS)))
    success = [line["success_rate"] for line in lines if "success_rate" in line]
    first, last = success[0], float(smoothed(success)[-1])
    print(f"success {first:.3f} before, {last:.3f} after {lines[-1]['env_steps']:,} steps")
    print(f"{time.perf_counter() - started:.0f} s in all")
    return 0 if last > first + 0.1 else 1


def _warm(task: tuple[Path, str, int]) -> None:
    """Make a warm policy; it has seen random play of the games that are learnt from."""
    out, name, number = task
    setting = SETTINGS[name]
    plan = Warmup(
        directory=warm_start(out, name, number),
        environment="textworld",
        games=setting.games(setting.seeds),
        num_tasks=len(setting.seeds),
        num_episodes=_EPISODES // len(setting.seeds),
        max_steps=setting.max_steps,
        num_tokens=1024,
        num_updates=600,
        template="tiny",
        seed=number,
        num_workers=0,
        games_dir=None,
    )
    run_warmup(plan, on_progress=lambda what, done, total: None)


def _run(task: tuple[Path, Cell]) -> None:
    out, cell = task
    started = time.perf_counter()
    lines = list(run_loop(cell.config(out)))
    success = smoothed([line["success_rate"] for line in lines if "success_rate" in line])
    print(
        f"{cell.name}: success {success[0]:.2f} to {success[-1]:.2f}, "
        f"{lines[-1]['env_steps']:,} steps, {time.perf_counter() - started:.0f} s",
        flush=True,
    )


def _in_processes(do: Callable[[Any], None], tasks: Iterable[Any], count: int) -> None:
    """Do all tasks, each in a process with one thread, some at a time."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with get_context("spawn").Pool(count, maxtasksperchild=4) as pool:
        for _ in pool.imap_unordered(do, tasks):
            pass


if __name__ == "__main__":
    main()
