"""Tables of `run.py`: what holds on games that nothing was learnt from.

A comparison is paired by warm policy: the mean of the differences, and the 95 % interval of
Student's t. Before the last planned pair nothing is decided.
"""

from typing import Any

import polars as pl

from experiments.markdown import frame, ranged
from experiments.means import students_t
from experiments.textworld.cells import ARMS, WARM_POLICIES

COMPARED: tuple[tuple[str, str], ...] = (
    ("reach", "grpo"),
    ("reach", "gigpo"),
    ("reach", "graphgpo"),
    ("gigpo", "grpo"),
    ("graphgpo", "grpo"),
)
"""Arms whose difference is shown, the main comparison first."""


def tables(rows: pl.DataFrame) -> str:
    """Return the tables of whole pairs as Markdown.

    Args:
        rows: Rows of `run.learn`.
    """
    whole = ends_of(rows).filter(pl.col("arm").n_unique().over("seed") == len(ARMS))
    num_pairs = whole["seed"].n_unique()
    unfinished = "" if num_pairs >= len(WARM_POLICIES) else "unfinished, nothing is decided: "
    texts = [f"{unfinished}{num_pairs} of {len(WARM_POLICIES)} planned pairs are whole\n"]
    if num_pairs:
        texts += [frame(endpoint_table(whole)), frame(gaps_table(whole))]
    return "\n".join(texts)


def ends_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each run of a pair.

    `first` and `end` are the success on unseen games before and after the pass, `during` is the
    mean success during it; `env_steps` and `seconds` are those of the pass.
    """
    unseen = pl.col("unseen").drop_nulls()
    return (
        rows.sort("iteration", maintain_order=True)
        .group_by("arm", "seed", maintain_order=True)
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
    means = ends.group_by("arm", maintain_order=True).agg(
        pl.len().alias("pairs"), pl.exclude("seed").mean()
    )
    return means.sort("end", descending=True, maintain_order=True).select(
        "arm",
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
                "unseen, at the end, difference": ranged(students_t(at_end), 3),
                "ahead in": int((at_end > 0).sum()),
                "during the pass, difference": ranged(students_t(during), 3),
            }
        )
    return pl.DataFrame(rows)
