"""Means over groups, then seeds and policies, then worlds, with intervals clustered by world."""

from collections.abc import Sequence

import polars as pl

from experiments.credit_truth.learning import REPORTED_SEEDS, TUNING_SEEDS
from experiments.means import Mean, mean

STATISTICS: tuple[str, ...] = ("fraction", "cosine", "spearman", "silent")

CREDIT: tuple[str, ...] = ("credit", "lists")
"""Columns that name a credit."""


def by_world(rows: pl.DataFrame, statistics: Sequence[str], keys: Sequence[str]) -> pl.DataFrame:
    """Return the mean of each statistic by keys and world: over seeds, then over policies."""
    return (
        rows.group_by(*keys, "world", "policy", maintain_order=True)
        .agg(pl.col(statistics).mean())
        .group_by(*keys, "world", maintain_order=True)
        .agg(pl.col(statistics).mean())
        .sort("world", maintain_order=True)
    )


def averages(
    rows: pl.DataFrame, statistics: Sequence[str], keys: Sequence[str]
) -> dict[tuple[object, ...], dict[str, Mean]]:
    """Return the mean over worlds of each statistic, by the values of the keys.

    Args:
        rows: With columns `world`, `policy`, those of the keys and of the statistics.
        statistics: Columns to average.
        keys: Columns that the means are by. Their order of appearance is kept.
    """
    worlds = by_world(rows, statistics, keys)
    return {
        key: {name: mean(of_key[name].to_list()) for name in statistics}
        for key in rows.select(keys).unique(maintain_order=True).iter_rows()
        for of_key in [_of(worlds, keys, key)]
    }


def differences(
    rows: pl.DataFrame, reference: str, statistic: str = "fraction"
) -> dict[tuple[object, ...], Mean]:
    """Return how much more of a statistic each credit has than another, paired by world.

    Args:
        rows: Rows with one number of groups.
        reference: Name of the credit that the others are compared with.
        statistic: Column to compare.
    """
    worlds = by_world(rows, [statistic], CREDIT)
    base = worlds.filter(credit=reference).select("world", base=statistic)
    gaps = worlds.join(base, on="world", maintain_order="left").with_columns(
        gap=pl.col(statistic) - pl.col("base")
    )
    keys = rows.select(CREDIT).unique(maintain_order=True).iter_rows()
    return {key: mean(_of(gaps, CREDIT, key)["gap"].to_list()) for key in keys}


def by_wins(rows: pl.DataFrame) -> dict[tuple[object, ...], list[Mean]]:
    """Return the mean over worlds of each credit's fraction with one group, by `judge.WINS`.

    Within a world every group counts alike. A world without such a group does not count.
    """
    columns = ["groups_by_wins", "sum_by_wins"]
    number = pl.int_ranges(pl.col(columns[0]).list.len()).alias("wins")
    of_world = (
        rows.filter(num_groups=1)
        .with_columns(number)
        .explode("wins", *columns)
        .group_by(*CREDIT, "wins", "world", maintain_order=True)
        .agg(pl.col(columns).sum())
        .with_columns(fraction=pl.col("sum_by_wins") / pl.col("groups_by_wins"))
        .sort("world", maintain_order=True)
    )
    kinds = of_world["wins"].unique().sort().to_list()
    return {
        key: [
            mean(_of(of_world, [*CREDIT, "wins"], [*key, wins])["fraction"].to_list())
            for wins in kinds
        ]
        for key in rows.select(CREDIT).unique(maintain_order=True).iter_rows()
    }


def scored(curves: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `learning.learn` with figures of each run.

    They are `mean`, the mean success over the curve, `final`, the success at its end, and `stuck`,
    1 for a run that ends no better than it began.
    """
    return curves.with_columns(
        mean=pl.col("curve").list.mean(),
        final=pl.col("curve").list.last(),
        stuck=(pl.col("curve").list.last() <= pl.col("curve").list.first()).cast(pl.Float64),
    )


def reported(curves: pl.DataFrame) -> pl.DataFrame:
    """Return the `scored` runs that no rate is chosen on."""
    return scored(curves).filter(pl.col("seed").is_in(REPORTED_SEEDS))


def tuned(curves: pl.DataFrame, *, by_world: bool = True) -> pl.DataFrame:
    """Return the `reported` runs of each credit at its best rate on other seeds.

    Args:
        curves: Rows of `learning.learn`.
        by_world: Choose a rate for each world; else one for all, as a trainer must.
    """
    of = [*CREDIT, "world"] if by_world else CREDIT
    best = (
        scored(curves)
        .filter(pl.col("seed").is_in(TUNING_SEEDS))
        .group_by(*of, "rate")
        .agg(pl.col("mean").mean())
        .sort("mean", "rate", descending=[True, False])
        .unique(of, keep="first", maintain_order=True)
        .select(*of, "rate")
    )
    return reported(curves).join(best, on=[*of, "rate"], maintain_order="left")


def _of(rows: pl.DataFrame, keys: Sequence[str], values: Sequence[object]) -> pl.DataFrame:
    return rows.filter(*(pl.col(key) == value for key, value in zip(keys, values, strict=True)))
