"""Draw the learning curves on unseen boards."""

from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib import pyplot as plt

from experiments.sokoban.report import repeated

_COLOURS = ("#000000", "#e69f00", "#009e73", "#0072b2", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
"""Okabe and Ito's, which the colour-blind can tell apart."""


def draw(rows: pl.DataFrame, path: Path) -> None:
    """Draw the mean over warm starts of every arm at its own rate, for each size of boards.

    Args:
        rows: Rows of `learn.learn`.
        path: Path of the PNG.
    """
    mpl.use("Agg")
    sizes = rows["size"].unique().sort().to_list()
    figure, grid = plt.subplots(1, len(sizes), figsize=(5.5 * len(sizes), 4), squeeze=False)
    for axes, size in zip(grid[0], sizes, strict=True):
        own = rows.filter(size=size)
        runs = repeated(own).select("arm", "rate", "warm")
        curves = own.join(runs, on=["arm", "rate", "warm"], how="semi").sort("iteration")
        means = curves.group_by("arm", "iteration", maintain_order=True).agg(
            pl.col("held_out").mean()
        )
        arms = means["arm"].unique().sort().to_list()
        for number, arm in enumerate(arms):
            line = means.filter(arm=arm)
            colour = _COLOURS[number % len(_COLOURS)]
            axes.plot(line["iteration"], line["held_out"], color=colour, label=arm)
        axes.set_xlabel("iterations")
        axes.set_title(f"{size}: mean success on unseen boards")
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)
