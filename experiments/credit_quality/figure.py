"""Draw the rank correlation along each axis, with a line for each estimator."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from experiments.credit_quality.averages import step_or_total
from experiments.credit_quality.conditions import (
    BASE,
    EPSILONS,
    GROUP_SIZES,
    NOISES,
    WINDOWS,
    Condition,
)

_COLOURS = (
    "#666666",
    "#bbbbbb",
    "#e69f00",
    "#009e73",
    "#0072b2",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#000000",
)
"""Okabe and Ito's colours and two greys, which colour-blind readers can tell apart."""
_MARKERS = "osD^vP"

_AXES: Mapping[str, Mapping[str, Condition]] = {
    "share of random actions": {f"{e:g}": Condition(epsilon=e) for e in EPSILONS},
    "rollouts in a group": {str(size): Condition(group_size=size) for size in GROUP_SIZES},
    "noise, exact texts": {noise: Condition(noise=noise) for noise in NOISES},
    "noise, merge by segments": {n: Condition(noise=n, merge="segments") for n in NOISES},
    "iterations in the graph": {str(window): Condition(window=window) for window in WINDOWS},
}
_STATISTICS: Mapping[str, str] = {"over_all": "all steps", "over_failed": "steps of failures"}


def draw(found: pl.DataFrame, path: Path) -> None:
    """Draw the step part of each estimator, or its advantage if it has none.

    Args:
        found: Result of `averages.averages`.
        path: Path of the PNG.
    """
    mpl.use("Agg")
    figure, grid = plt.subplots(2, len(_AXES), figsize=(15, 7), sharey="row", squeeze=False)
    for axes_of_row, (statistic, label) in zip(grid, _STATISTICS.items(), strict=True):
        for axes, (title, conditions) in zip(axes_of_row, _AXES.items(), strict=True):
            _lines(found, statistic, conditions, axes)
            axes.set_xlabel(title)
        axes_of_row[0].set_ylabel(f"rank correlation, {label}")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.suptitle(
        "Credit of each step against the distance it gained: mean over games, 95 % interval "
        f"(base: {BASE.epsilon:.0%} random actions, {BASE.group_size} rollouts)"
    )
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _lines(
    found: pl.DataFrame, statistic: str, conditions: Mapping[str, Condition], axes: Axes
) -> None:
    order = {condition.name: place for place, condition in enumerate(conditions.values())}
    for number, (estimator, part) in enumerate(step_or_total(found.filter(condition=BASE.name))):
        own = found.filter(pl.col("condition").is_in(list(order)), estimator=estimator, part=part)
        own = own.sort(pl.col("condition").replace_strict(order, default=None))
        value, low, high = (own[f"{statistic}{end}"].to_numpy() for end in ("", "_low", "_high"))
        axes.errorbar(
            np.arange(len(value)) + (number - 4) * 0.02,
            value,
            yerr=np.stack([value - low, high - value]),
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4,
            linewidth=1.3,
            elinewidth=0.7,
            label=estimator if part == "step" else f"{estimator} (advantage)",
        )
    axes.set_xticks(range(len(conditions)), list(conditions))
    if len(conditions) > 4:
        axes.tick_params("x", rotation=30)
    axes.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
