"""Run or resume the experiment: warm starts, sweep, and repeats of the tuned arms.

    python -m experiments.textworld.run --setting easy --out runs
    python -m experiments.textworld.run --out runs --kept experiments/textworld/kept --seed 1
    python -m experiments.textworld.run --quick --out quick

Every run is a loop (`graphcredit loop`) in its own folder, on the CPU. The repeats of one seed, of
all arms, come before those of the next. The command may be interrupted: it resumes, and skips
finished runs. It also skips the runs in the tables of `--kept`, unless `--arms` or `--seed` selects
them; those runs must have begun from the same weights. `--quick` makes one short run, and fails
unless success rises.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from experiments.textworld.cells import Cell, Tuning, repeats, sweep, sweep_rates, variants
from experiments.textworld.curves import smoothed
from experiments.textworld.runs import Runs, mean_success, success_of
from experiments.textworld.settings import SETTINGS, VARIANTS
from experiments.textworld.warm import make_warm
from graphcredit.collector.environments.prefix_cache import Environments
from graphcredit.loop.run import run_loop

QUICK = Cell(
    setting="quick", arm="graphgpo", learning_rate=1e-3, kl_coefficient=0.02, warm=0, seed=0
)
RISE = 0.25
"""Least rise of success in the quick run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--setting", choices=[name for name in SETTINGS if name != "quick"], default="easy"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kept", type=Path, help="directory of tables that report.py wrote")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time, each on one core")
    parser.add_argument("--arms", help="only these arms, separated by commas")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--quick", action="store_true", help="one short run of a minute or two")
    options = parser.parse_args()
    _hide_gpus()
    if options.quick:
        before, after = quick(options.out)
        sys.exit(0 if after >= before + RISE else 1)
    if options.kept and not any(options.kept.glob("*.parquet")):
        parser.error(f"--kept must be a directory of tables that report.py wrote: {options.kept}")
    runs = Runs(out=options.out, kept=options.kept)
    arms = options.arms.split(",") if options.arms else None
    best = tune(runs, options.setting, arms, options.workers)
    cells = [
        cell
        for cell in (*repeats(options.setting, best), *variants(options.setting, best))
        if (arms is None or cell.arm in arms) and options.seed in (None, cell.seed)
    ]
    if not cells:
        parser.error(f"no tuned run has --arms {options.arms} and --seed {options.seed}")
    is_again = arms is not None or options.seed is not None
    for seed in dict.fromkeys(cell.seed for cell in cells):
        # All arms of a pair, then the next pair: what is there is always comparable.
        pair = [cell for cell in cells if cell.seed == seed]
        _make(Runs(out=options.out) if is_again else runs, pair, options.workers)
    for cell in cells if is_again else ():
        print(against_kept(runs, cell), flush=True)


def tune(
    runs: Runs, setting: str, arms: Sequence[str] | None, num_workers: int
) -> dict[str, Tuning]:
    """Make the missing runs of the sweep; return the best tuning of each arm.

    Args:
        runs: Finished runs.
        setting: Name of the setting.
        arms: Arms to tune, or variants of them; all if None.
        num_workers: Runs at a time.
    """
    known = SETTINGS[setting].arms
    wanted = {VARIANTS[arm][0] if arm in VARIANTS else arm for arm in arms or ()}
    wanted |= {*(known if arms is None else arms)}
    for cells in (lambda: sweep(setting), lambda: sweep_rates(setting, tuned(runs, setting))):
        _make(runs, [cell for cell in cells() if cell.arm in wanted], num_workers)
    best = {arm: tuning for arm, tuning in tuned(runs, setting).items() if arm in known}
    for arm, (rate, kl) in best.items():
        print(f"{arm}: learning rate {rate:g}, KL coefficient {kl:g}", flush=True)
    return best


def against_kept(runs: Runs, cell: Cell) -> str:
    """Compare a run's mean success with that of the kept run, in one line of text."""
    texts = [
        f"{when} {mean_success(run, cell):.3f} from weights {run['warm_model'][0]}"
        for when, run in (("now", runs.made(cell)), ("kept", runs.kept_of(cell)))
        if run is not None
    ]
    return f"{cell.name}: mean success {', '.join(texts)}"


def tuned(runs: Runs, setting: str) -> dict[str, Tuning]:
    """Return the learning rate and KL coefficient with which each arm learnt most in the sweep.

    The measure is mean success over the sweep's budget of environment steps.
    """
    swept = sweep(setting)
    return _best(runs, [*swept, *sweep_rates(setting, _best(runs, swept))])


def _best(runs: Runs, cells: Sequence[Cell]) -> dict[str, Tuning]:
    best: dict[str, tuple[float, Tuning]] = {}
    for cell in cells:
        run = runs.of(cell)
        if run is not None:
            learnt = mean_success(run, cell)
            tuning = (cell.learning_rate, cell.kl_coefficient)
            if learnt > best.get(cell.arm, (-1.0, tuning))[0]:
                best[cell.arm] = (learnt, tuning)
    return {arm: tuning for arm, (_, tuning) in best.items()}


def _make(runs: Runs, cells: Sequence[Cell], num_workers: int) -> None:
    """Make the runs that are not done, after the warm starts that they need."""
    missing = [cell for cell in cells if runs.of(cell) is None]
    warm = sorted({(cell.setting, cell.warm) for cell in missing})
    _in_processes(_warm, [(runs.out, *which) for which in warm], num_workers)
    for setting in {setting for setting, _ in warm}:
        if strangers := runs.strangers(setting):
            sys.exit(
                f"compared runs must begin from the same weights: the runs in {runs.kept} from "
                f"warm policies {strangers} of {setting} began from other weights than those in "
                f"{runs.out}. Omit --kept, and make all runs here"
            )
    _in_processes(_run, [(runs.out, cell) for cell in missing], num_workers)


def _in_processes(
    do: Callable[[Any], None], tasks: Sequence[Any], count: int, num_threads: int = 1
) -> None:
    """Do all tasks in a pool of `count` processes, each with `num_threads` threads.

    Raises:
        BaseExceptionGroup: Some tasks failed. The others were still done.
    """
    if not tasks:
        return
    os.environ["OMP_NUM_THREADS"] = str(num_threads)
    with ProcessPoolExecutor(min(count, len(tasks)), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(do, task) for task in tasks]
        failed = [error for future in futures if (error := future.exception()) is not None]
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {len(tasks)} failed", failed)


def _warm(task: tuple[Path, str, int]) -> None:
    _hide_gpus()
    make_warm(*task)


def _hide_gpus() -> None:
    """Hide all GPUs from this process and its children, before torch looks, which it does once."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


_environments = Environments()
"""Cache of the games, shared by all runs of this process."""


def _run(task: tuple[Path, Cell]) -> None:
    out, cell = task
    lines = _until_done(cell, run_loop(cell.config(out), environments=_environments))
    rates = [success_of(line, cell) for line in lines]
    success = smoothed([rate for rate in rates if rate is not None])
    # A finished run is never continued, so only its log is needed.
    shutil.rmtree(out / cell.name / "policies")
    seconds = sum(line.get("cpu_seconds", 0.0) for line in lines)
    print(
        f"{cell.name}: success {success[0]:.2f} to {success[-1]:.2f}, {len(lines)} iterations, "
        f"{lines[-1]['env_steps']:,} steps, {seconds:.0f} s",
        flush=True,
    )


def _until_done(cell: Cell, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a run's lines up to and including the one with which it is done."""
    taken: list[dict[str, Any]] = []
    for line in lines:
        taken.append(line)
        if cell.is_done(line["iteration"], line["env_steps"]):
            break
    return taken


def quick(out: Path) -> tuple[float, float]:
    """Return the success rate of a warm policy before and after a short run."""
    started = time.perf_counter()
    _in_processes(_warm, [(out, QUICK.setting, QUICK.warm)], 1, torch.get_num_threads())
    print(f"warm start: {time.perf_counter() - started:.0f} s", flush=True)
    lines = _until_done(QUICK, run_loop(QUICK.config(out)))
    success = smoothed([line["success_rate"] for line in lines])
    print(f"success: {', '.join(f'{rate:.2f}' for rate in success)}")
    print(f"{time.perf_counter() - started:.0f} s in all")
    return float(success[0]), float(success[-1])


if __name__ == "__main__":
    main()
