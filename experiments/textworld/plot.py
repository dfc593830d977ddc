"""Plot the learning curves: all arms together, then each arm with its runs and their band."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray

from experiments.textworld.curves import coverage, smoothed
from experiments.textworld.settings import Setting
from experiments.textworld.tables import BASELINE
from graphcredit.store.files.atomic import atomic_path

_COLOURS = ("#000000", "#999999", "#e69f00", "#009e73", "#0072b2", "#cc79a7", "#56b4e9", "#d55e00")
"""Okabe and Ito's, which the colour-blind can tell apart."""
_COLUMNS = 4
_POINTS = 100

Floats = NDArray[np.float64]


def plot(runs: pl.DataFrame, setting: Setting, path: Path) -> None:
    """Write a picture of success against environment steps and against seconds of one core.

    Args:
        runs: Rows of the runs, of one or more arms.
        setting: Setting of the runs.
        path: Path of the PNG.
    """
    mpl.use("Agg")
    arms = [str(arm) for arm in runs["arm"].unique(maintain_order=True)]
    colours = {arm: _COLOURS[number % len(_COLOURS)] for number, arm in enumerate(arms)}
    steps = np.linspace(0, setting.budget, _POINTS)
    curves = {arm: _curves(runs, arm, "env_steps", steps, setting.window) for arm in arms}
    num_rows = -(-len(arms) // _COLUMNS)
    figure = plt.figure(figsize=(13, 4.2 + 2.4 * num_rows), layout="constrained")
    halves = figure.subfigures(2, 1, squeeze=False, height_ratios=[4.2, 2.4 * num_rows])
    above, below = halves[:, 0]
    left, right, *third = above.subplots(1, 3 if setting.held_out else 2)
    for arm in arms:
        left.plot(steps, curves[arm].mean(axis=0), color=colours[arm], label=arm)
        _against_seconds(runs, arm, right, colours[arm], setting.window)
        for axes in third:
            _held_out(runs, arm, axes, colours[arm], steps)
    left.set(xlabel="environment steps", ylabel="success on the training games", ylim=(0, 1))
    right.set(xlabel="seconds of one core", ylim=(0, 1))
    for axes in third:
        axes.set(xlabel="environment steps", ylabel="success on games never learnt from")
        axes.set_ylim(bottom=0)
    for axes in (left, right, *third):
        axes.grid(alpha=0.3)
    left.legend(frameon=False, fontsize=9)
    small = below.subplots(num_rows, min(_COLUMNS, len(arms)), sharex=True, sharey=True)
    for arm, axes in zip(arms, np.ravel(small), strict=False):
        _alone(axes, arm, steps, curves, colours[arm])
    for axes in np.ravel(small)[len(arms) :]:
        axes.set_axis_off()
    figure.suptitle(
        f"{setting.name}: mean of runs; below, each run, the band from the lowest to the highest "
        f"(its confidence is for the median, at each point), and {BASELINE} dashed"
    )
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format="png")
    plt.close(figure)


def _alone(axes: Axes, arm: str, x: Floats, curves: dict[str, Floats], colour: str) -> None:
    runs = curves[arm]
    axes.fill_between(x, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, runs.T, color=colour, alpha=0.4, linewidth=0.7)
    axes.plot(x, runs.mean(axis=0), color=colour)
    if BASELINE in curves:
        axes.plot(x, curves[BASELINE].mean(axis=0), color="#000000", linestyle="--", linewidth=0.8)
    band = f"s, {coverage(len(runs)):.0%} band" if len(runs) > 1 else ""
    axes.set_title(f"{arm}, {len(runs)} run{band}", fontsize=10)
    axes.grid(alpha=0.3)
    axes.set_ylim(0, 1)
    axes.locator_params(axis="x", nbins=4)


def _against_seconds(runs: pl.DataFrame, arm: str, axes: Axes, colour: str, window: int) -> None:
    """Draw the mean over runs, up to the seconds of the shortest run."""
    ends = runs.filter(arm=arm).group_by("warm", "seed").agg(pl.col("seconds").max())["seconds"]
    seconds = np.linspace(0, float(ends.min() or 0), _POINTS)  # pyright: ignore[reportArgumentType]
    axes.plot(seconds, _curves(runs, arm, "seconds", seconds, window).mean(axis=0), color=colour)
    axes.grid(alpha=0.3)


def _held_out(runs: pl.DataFrame, arm: str, axes: Axes, colour: str, steps: Floats) -> None:
    """Draw the evaluations without smoothing: every run, and their mean."""
    held_out = "sampled_held_out_success_rate"
    seen = _curves(runs.drop_nulls(held_out), arm, "env_steps", steps, 1, y=held_out)
    axes.plot(steps, seen.T, color=colour, alpha=0.4, linewidth=0.7)
    axes.plot(steps, seen.mean(axis=0), color=colour)


def _curves(
    runs: pl.DataFrame, arm: str, x: str, grid: Floats, window: int, y: str = "success_rate"
) -> Floats:
    """Return [runs, points] the smoothed success of each run of an arm."""
    return np.array(
        [
            np.interp(grid, run[x].to_numpy(), smoothed(run[y], window))
            for _, run in runs.filter(arm=arm).group_by("warm", "seed", maintain_order=True)
        ]
    )
