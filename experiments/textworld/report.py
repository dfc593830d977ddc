"""What the runs came to: tables, a plot, and the table of all iterations, to keep.

    python -m experiments.textworld.report --setting easy --out runs

Runs that are not done yet are left out and counted; those that are only in what was kept before are
in. Needs the extra `experiments`.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from experiments.textworld.curves import bootstrap, smoothed
from experiments.textworld.markdown import markdown
from experiments.textworld.run import tuned
from experiments.textworld.runs import Runs
from experiments.textworld.settings import (
    SETTINGS,
    Setting,
    repeats,
    sweep,
    sweep_rates,
    variants,
)
from experiments.textworld.tables import (
    arms_table,
    health_table,
    held_out_table,
    sweep_table,
    variants_table,
)
from graphcredit.store.atomic import atomic_path

KEPT = Path(__file__).parent / "kept"

_COLOURS = ("#000000", "#999999", "#e69f00", "#009e73", "#0072b2", "#cc79a7", "#56b4e9", "#d55e00")
"""Okabe and Ito's, which the colour-blind can tell apart."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kept", type=Path, default=KEPT, help="where tables and plots go")
    options = parser.parse_args()
    setting = SETTINGS[options.setting]
    runs = Runs(out=options.out, kept=options.kept)
    best = tuned(runs, setting.name)
    swept = [*sweep(setting.name), *sweep_rates(setting.name, best)] if setting.sweep_budget else []
    wanted = repeats(setting.name, best)
    explaining = variants(setting.name, best)
    done, explained = runs.done(wanted), runs.done(explaining)
    options.kept.mkdir(parents=True, exist_ok=True)
    if swept:
        found = {cell: run for cell in swept if (run := runs.of(cell)) is not None}
        print(f"{len(found)} of {len(swept)} runs of the sweep are done\n")
        print(markdown(sweep_table(found)))
    num_done = done.select("arm", "seed").n_unique() if len(done) else 0
    print(f"{num_done} of {len(wanted)} repeats are done\n")
    with atomic_path(options.kept / f"{setting.name}.parquet") as path:
        runs.done([*swept, *wanted, *explaining]).write_parquet(path)
    if num_done:
        both = pl.concat([done, explained], how="diagonal_relaxed")
        print(markdown(arms_table(done, setting, best)))
        print(markdown(variants_table(both, setting)))
        print(markdown(health_table(both)))
        if setting.held_out:
            print(markdown(held_out_table(done)))
        _plot(done, setting, options.kept / f"{setting.name}.png")


def _plot(runs: pl.DataFrame, setting: Setting, path: Path) -> None:
    mpl.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), sharey=True)
    for x, title, axes in (
        ("env_steps", "environment steps", left),
        ("seconds", "seconds of one core", right),
    ):
        _curves(runs, x, axes)
        axes.set_xlabel(title)
        axes.grid(alpha=0.3)
    left.set_ylabel("success on the training games")
    left.set_xlim(0, setting.budget)
    left.set_ylim(0, 1)
    left.legend(frameon=False)
    figure.suptitle(f"{setting.name}: mean of all runs, 95 % band")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _curves(runs: pl.DataFrame, x: str, axes: Axes) -> None:
    limit = float(runs.group_by("arm", "warm", "seed").agg(pl.col(x).max())[x].max() or 0)
    grid = np.linspace(0, limit, 100)
    for ((arm,), own), colour in zip(
        runs.group_by("arm", maintain_order=True), _COLOURS, strict=False
    ):
        curves = np.array(
            [
                np.interp(grid, run[x].to_numpy(), smoothed(run["success_rate"]))
                for _, run in own.group_by("warm", "seed", maintain_order=True)
            ]
        )
        bands = np.array([bootstrap(column.tolist(), draws=1000) for column in curves.T])
        axes.plot(grid, curves.mean(axis=0), color=colour, label=str(arm))
        axes.fill_between(grid, bands[:, 0], bands[:, 1], color=colour, alpha=0.15, linewidth=0)


if __name__ == "__main__":
    main()
