"""What the runs came to: curves as Parquet, a table, and a plot.

    python -m experiments.textworld.report --setting easy --out results

Runs that are not done yet are left out and counted.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from experiments.textworld.curves import area, bootstrap, first_at, paired_test, read_runs, smoothed
from experiments.textworld.run import tuned
from experiments.textworld.settings import SETTINGS, Setting, repeats, sweep

BASELINE = "grpo"
LEVEL = 0.8

_COLOURS = ("#000000", "#999999", "#e69f00", "#009e73", "#0072b2", "#cc79a7", "#56b4e9")
"""Okabe and Ito's, which the colour-blind can tell apart."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=list(SETTINGS), default="easy")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    setting = SETTINGS[options.setting]
    best = tuned(options.out, setting.name)
    cells = repeats(setting.name, best)
    runs = read_runs(options.out, cells)
    done = runs.group_by("arm", "warm", "seed").agg(pl.col("iteration").max().alias("last"))
    done = done.filter(pl.col("last") >= setting.iterations - 1)
    print(f"{len(done)} of {len(cells)} runs are done")
    runs = runs.join(done, on=["arm", "warm", "seed"]).filter(pl.col("success_rate").is_not_null())
    folder = options.out / setting.name
    runs.write_parquet(folder / "curves.parquet")
    table = _table(runs, setting, best)
    (folder / "table.md").write_text(table, encoding="utf-8")
    print(table)
    print(_sweep_table(options.out, setting))
    _plot(runs, setting, folder / "curves.png")


def _table(runs: pl.DataFrame, setting: Setting, best: dict[str, tuple[float, float]]) -> str:
    """Return a Markdown table: one row for each arm, the best first."""
    areas: dict[str, dict[tuple[int, int], float]] = {}
    rows: dict[str, list[str]] = {}
    for (arm,), own in runs.group_by("arm", maintain_order=True):
        name = str(arm)
        curves = {
            (int(key[0]), int(key[1])): (run["env_steps"].to_list(), run["success_rate"].to_list())
            for key, run in own.group_by("warm", "seed", maintain_order=True)
        }
        areas[name] = {pair: area(*curve, setting.budget) for pair, curve in curves.items()}
        reached = [first_at(*curve, LEVEL) for curve in curves.values()]
        ends = [float(smoothed(success)[-1]) for _, success in curves.values()]
        finite = [steps for steps in reached if np.isfinite(steps)]
        low, high = bootstrap(list(areas[name].values()))
        rate, kl = best[name]
        rows[name] = [
            name,
            f"{rate:g} / {kl:g}",
            str(len(curves)),
            f"{np.mean(list(areas[name].values())):.3f} ({low:.3f}–{high:.3f})",
            f"{np.median(reached):,.0f}" if np.isfinite(np.median(reached)) else "never",
            f"{len(finite)}/{len(reached)}",
            f"{np.mean(ends):.3f}",
        ]
    for name, cells in rows.items():
        p = paired_test(areas[name], areas[BASELINE]) if name != BASELINE else float("nan")
        cells.append("" if np.isnan(p) else f"{p:.4f}")
    titles = [
        "arm",
        "rate / KL",
        "runs",
        f"mean success over {setting.budget:,} steps (95 %)",
        f"median steps to {LEVEL:.0%}",
        "reached",
        "success at the end",
        f"p against {BASELINE}",
    ]
    ordered = sorted(rows, key=lambda name: -np.mean(list(areas[name].values())))
    lines = [titles, ["---"] * len(titles), *(rows[name] for name in ordered)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _sweep_table(out: Path, setting: Setting) -> str:
    """Return what every arm came to at every learning rate and KL coefficient."""
    runs = read_runs(out, sweep(setting.name)).filter(pl.col("success_rate").is_not_null())
    rows = [
        {
            "arm": arm,
            "rate / KL": f"{rate:g} / {kl:g}",
            "area": area(run["env_steps"].to_list(), run["success_rate"].to_list(), setting.budget),
        }
        for (arm, rate, kl), run in runs.group_by(
            "arm", "learning_rate", "kl_coefficient", maintain_order=True
        )
    ]
    wide = pl.DataFrame(rows).pivot(on="rate / KL", index="arm", values="area")
    lines = [wide.columns, ["---"] * wide.width]
    lines += [
        [row[0], *(f"{x:.3f}" if x is not None else "" for x in row[1:])] for row in wide.rows()
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _plot(runs: pl.DataFrame, setting: Setting, path: Path) -> None:
    mpl.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), sharey=True)
    for x, title, axes in (
        ("env_steps", "environment steps", left),
        ("seconds", "seconds of one core, stages only", right),
    ):
        _curves(runs, x, axes)
        axes.set_xlabel(title)
    left.set_ylabel("success on the training games")
    left.set_xlim(0, setting.budget)
    left.legend(frameon=False)
    figure.suptitle(f"{setting.name}: mean of all runs, 95 % band")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def _curves(runs: pl.DataFrame, x: str, axes: Axes) -> None:
    limit = float(runs.group_by("arm", "warm", "seed").agg(pl.col(x).max())[x].max() or 0)
    grid = np.linspace(0, limit, 100)
    for ((arm,), own), colour in zip(
        runs.group_by("arm", maintain_order=True), _COLOURS, strict=False
    ):
        curves = np.array(
            [
                np.interp(grid, run[x].to_numpy(), smoothed(run["success_rate"].to_list()))
                for _, run in own.group_by("warm", "seed", maintain_order=True)
            ]
        )
        bands = np.array([bootstrap(column.tolist(), draws=1000) for column in curves.T])
        axes.plot(grid, curves.mean(axis=0), color=colour, label=str(arm))
        axes.fill_between(grid, bands[:, 0], bands[:, 1], color=colour, alpha=0.15, linewidth=0)


if __name__ == "__main__":
    main()
