"""Setting `unseen`: does what a policy learns hold on games that it never learnt from?

Endpoint, main comparison and sweep were written down before the first run, and stand in
docs/research/learning.md. A comparison is paired by warm policy: the mean of the differences, and
the 95 % interval of Student's t. Before the last planned pair nothing is decided.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from experiments.markdown import frame
from experiments.textworld.cells import Tuning
from experiments.textworld.settings import Setting

COMPARED: tuple[tuple[str, str], ...] = (
    ("reach", "grpo"),
    ("reach", "graphgpo"),
    ("reach", "reach-no-lists"),
    ("reach-no-lists", "grpo"),
    ("graphgpo", "grpo"),
)
"""Arms whose difference is shown, the main comparison first."""

_KEY = ("arm", "warm", "seed")

_QUANTILES: tuple[float, ...] = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""0.975 quantiles of Student's t with 1, 2, ... degrees of freedom."""


def unseen_report(runs: pl.DataFrame, setting: Setting, best: Mapping[str, Tuning]) -> str:
    """Return how many pairs are whole, and the tables of these, as Markdown.

    Args:
        runs: Rows of the finished repeats.
        setting: Setting of the runs.
        best: Tuning of each arm.
    """
    pairs = whole_pairs(runs, setting)
    num_pairs = pairs["seed"].n_unique() if len(pairs) else 0
    unfinished = "" if num_pairs >= setting.seeds else "unfinished, nothing is decided: "
    texts = [f"{unfinished}{num_pairs} of {setting.seeds} planned pairs are whole\n"]
    if num_pairs:
        ends = ends_of(pairs)
        texts += [frame(endpoint_table(ends, best)), frame(gaps_table(ends))]
    return "\n".join(texts)


def whole_pairs(runs: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Return the rows of the repeats from whose warm policy every arm has a finished run."""
    if not len(runs):
        return runs
    repeats = runs.filter(pl.col("seed") > 0, pl.col("arm").is_in(setting.arms))
    num_arms = pl.col("arm").n_unique().over("warm", "seed")
    return repeats.filter(num_arms == len(setting.arms))


def without_half_pairs(table: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    """Return the rows of the sweep and of whole pairs.

    Another machine can go on from these: its warm policies have other weights, and a pair must not
    be half of each.
    """
    sweep = table.filter(pl.col("seed") == 0) if len(table) else table
    return pl.concat([sweep, whole_pairs(table, setting)])


def ends_of(runs: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each run.

    Its columns are `arm`, `warm`, `seed`; `first` and `end`, the success on unseen games before and
    after the pass; `during`, the mean success during it; and its `env_steps` and `seconds`.
    """
    unseen = pl.col("sampled_held_out_success_rate").drop_nulls()
    return (
        runs.sort("iteration", maintain_order=True)
        .group_by(_KEY, maintain_order=True)
        .agg(
            first=unseen.first(),
            end=unseen.last(),
            during=pl.col("success_rate").mean(),
            env_steps=pl.col("env_steps").last(),
            seconds=pl.col("seconds").last(),
        )
    )


def endpoint_table(ends: pl.DataFrame, best: Mapping[str, Tuning]) -> pl.DataFrame:
    """Return a row for each arm, the best first; means over its pairs.

    Args:
        ends: Result of `ends_of`.
        best: Tuning of each arm.
    """
    means = ends.group_by("arm", maintain_order=True).agg(
        pl.len().alias("pairs"), pl.exclude(*_KEY).mean()
    )
    return means.sort("end", descending=True, maintain_order=True).select(
        "arm",
        pl.col("arm")
        .replace_strict({a: f"{rate:g}" for a, (rate, _) in best.items()})
        .alias("rate"),
        "pairs",
        pl.col("first").alias("unseen, at first"),
        pl.col("end").alias("unseen, at the end"),
        pl.col("during").alias("during the pass"),
        pl.col("env_steps").round().cast(pl.Int64).alias("steps"),
        pl.col("seconds").round().cast(pl.Int64),
    )


def gaps_table(ends: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each comparison, with differences at the end and during the pass.

    Args:
        ends: Result of `ends_of`, of whole pairs.
    """
    of = {str(arm): own.sort("seed") for (arm,), own in ends.group_by("arm")}
    rows: list[dict[str, Any]] = []
    for one, other in COMPARED:
        at_end, during = (
            of[one][name].to_numpy() - of[other][name].to_numpy() for name in ("end", "during")
        )
        rows.append(
            {
                "difference": f"{one} - {other}",
                "pairs": len(at_end),
                "unseen, at the end, difference": ranged(at_end),
                "ahead in": int((at_end > 0).sum()),
                "during the pass, difference": ranged(during),
            }
        )
    return pl.DataFrame(rows)


def ranged(gaps: ArrayLike) -> str:
    """Return the mean of some differences with its interval; without one if there is only one."""
    values = np.asarray(gaps, np.float64)
    low, high = interval(values)
    between = f" ({low:+.3f} to {high:+.3f})" if np.isfinite(low) else ""
    return f"{values.mean():+.3f}{between}"


def interval(gaps: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of a mean by Student's t; infinite for one number.

    Args:
        gaps: [n] differences, of at most ten pairs.

    Raises:
        ValueError: There are more than ten, or none.
    """
    values = np.asarray(gaps, np.float64)
    if not 1 <= len(values) <= len(_QUANTILES) + 1:
        raise ValueError(f"gaps must be 1 to {len(_QUANTILES) + 1} numbers: got {len(values)}")
    if len(values) == 1:
        return -np.inf, np.inf
    half = _QUANTILES[len(values) - 2] * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)
