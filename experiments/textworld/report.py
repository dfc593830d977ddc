"""Tables of `run.py`: what holds on games that nothing was learnt from.

A comparison is paired by warm policy: the mean of the differences, and the 95 % interval of
Student's t. Before the last planned pair nothing is decided.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from experiments.markdown import frame
from experiments.textworld.cells import ARMS, SEEDS

COMPARED: tuple[tuple[str, str], ...] = (
    ("reach", "grpo"),
    ("reach", "graphgpo"),
    ("reach", "reach-no-lists"),
    ("reach-no-lists", "grpo"),
    ("graphgpo", "grpo"),
)
"""Arms whose difference is shown, the main comparison first."""

_QUANTILES: tuple[float, ...] = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""0.975 quantiles of Student's t with 1, 2, ... degrees of freedom."""


def tables(rows: pl.DataFrame) -> str:
    """Return the tables of sweep and whole pairs as Markdown.

    Args:
        rows: Rows of `run.learn`.
    """
    texts = [frame(sweep_table(rows))]
    whole = ends_of(rows).filter(pl.col("arm").n_unique().over("seed") == len(ARMS))
    num_pairs = whole["seed"].n_unique()
    unfinished = "" if num_pairs >= len(SEEDS) else "unfinished, nothing is decided: "
    texts.append(f"{unfinished}{num_pairs} of {len(SEEDS)} planned pairs are whole\n")
    if num_pairs:
        texts += [frame(endpoint_table(whole)), frame(gaps_table(whole))]
    return "\n".join(texts)


def _swept(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the mean success of each run of the sweep: no game was learnt from before."""
    by_run = rows.filter(seed=0).group_by("arm", "rate", maintain_order=True)
    return by_run.agg(pl.col("success").mean())


def best_rates(rows: pl.DataFrame) -> dict[str, float]:
    """Return the rate with which each arm learnt most in the sweep."""
    best = _swept(rows).sort("success", descending=True, maintain_order=True)
    return dict(best.unique("arm", keep="first", maintain_order=True).select("arm", "rate").rows())


def sweep_table(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the mean success of every arm at each rate."""
    named = _swept(rows).with_columns(pl.format("rate {}", "rate"))
    return named.pivot(on="rate", index="arm", values="success")


def ends_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each run of a pair.

    `first` and `end` are the success on unseen games before and after the pass, `during` is the
    mean success during it; `env_steps` and `seconds` are those of the pass.
    """
    unseen = pl.col("unseen").drop_nulls()
    return (
        rows.filter(pl.col("seed") > 0)
        .sort("iteration", maintain_order=True)
        .group_by("arm", "rate", "seed", maintain_order=True)
        .agg(
            first=unseen.first(),
            end=unseen.last(),
            during=pl.col("success").mean(),
            env_steps=pl.col("env_steps").last(),
            seconds=pl.col("seconds").last(),
        )
    )


def endpoint_table(ends: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each arm, the best first; means over its pairs."""
    means = ends.group_by("arm", "rate", maintain_order=True).agg(
        pl.len().alias("pairs"), pl.exclude("seed").mean()
    )
    return means.sort("end", descending=True, maintain_order=True).select(
        "arm",
        pl.format("{}", "rate").alias("rate"),
        "pairs",
        pl.col("first").alias("unseen, at first"),
        pl.col("end").alias("unseen, at the end"),
        pl.col("during").alias("during the pass"),
        pl.col("env_steps").round().cast(pl.Int64).alias("steps"),
        pl.col("seconds").round().cast(pl.Int64),
    )


def gaps_table(ends: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each comparison, with differences at the end and during the pass."""
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
    mean, freedom = values.mean(), len(values) - 1
    if not freedom:
        return f"{mean:+.3f}"
    half = _QUANTILES[freedom - 1] * values.std(ddof=1) / np.sqrt(len(values))
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"
