"""Tables of `run.py`: success on boards that were never seen."""

from collections.abc import Mapping

import polars as pl

from experiments.markdown import interval, ranged, sections, table
from experiments.means import Mean, mean
from experiments.sokoban.settings import RATES, TUNING_WARMS

REFERENCES: tuple[str, ...] = ("grpo", "graphgpo")
"""Arms with which the others are compared, if they were run."""

_RUN = ("size", "arm", "rate", "warm")


def tables(rows: pl.DataFrame) -> str:
    """Return all tables of the rows of `learn.learn`."""
    texts: dict[str, str] = {}
    for size in rows["size"].unique(maintain_order=True).sort().to_list():
        of_size = rows.filter(size=size)
        texts[f"{size}: success on unseen boards"] = _arms(repeated(of_size))
        texts[f"{size}: differences, paired by warm start"] = _gaps(repeated(of_size))
        texts[f"{size}: success at the end, by rate, on the boards for tuning"] = _sweep(of_size)
    return sections(texts)


def best_rates(rows: pl.DataFrame) -> dict[tuple[str, str], float]:
    """Return the rate of each (size, arm) that is best at the end on the boards for tuning.

    Of equal rates the smallest is taken.
    """
    swept = ends(rows.filter(pl.col("warm").is_in(TUNING_WARMS)))
    best = (
        swept.group_by("size", "arm", "rate", maintain_order=True)
        .agg(pl.col("end").mean())
        .sort("end", "rate", descending=[True, False], maintain_order=True)
        .unique(["size", "arm"], keep="first", maintain_order=True)
        .sort("size", "arm")
    )
    return {(size, arm): rate for size, arm, rate, _ in best.iter_rows()}


def ends(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each run.

    Its columns are those of `_RUN`; `begin`, `end` and `mean`, the first, the last and the mean
    success on held-out boards; `training`, the last success on the boards to learn from;
    `with_credit` and `size_of_credit`, means over the run; and its `env_steps` and `seconds`.
    """
    return (
        rows.sort("iteration", maintain_order=True)
        .group_by(_RUN, maintain_order=True)
        .agg(
            begin=pl.col("held_out").first(),
            end=pl.col("held_out").last(),
            mean=pl.col("held_out").mean(),
            training=pl.col("training").last(),
            with_credit=pl.col("with_credit").mean(),
            size_of_credit=pl.col("size_of_credit").mean(),
            env_steps=pl.col("env_steps").last(),
            seconds=pl.col("seconds").last(),
        )
    )


def repeated(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row of `ends` for each reported run at the rate that was chosen for its arm."""
    best = best_rates(rows)
    reported = ends(rows.filter(~pl.col("warm").is_in(TUNING_WARMS)))
    kept = [
        best.get((row["size"], row["arm"])) == row["rate"] for row in reported.iter_rows(named=True)
    ]
    return reported.filter(pl.Series(kept, dtype=pl.Boolean)).sort("arm", "warm")


def gaps(runs: pl.DataFrame, reference: str, column: str) -> dict[str, Mean]:
    """Return how much more of a column each arm has than another, paired by warm start.

    Args:
        runs: Result of `repeated`, of one size.
        reference: Arm that the others are compared with.
        column: Column to compare.
    """
    base = runs.filter(arm=reference).select("warm", base=column)
    paired = runs.join(base, on="warm", maintain_order="left").with_columns(
        gap=pl.col(column) - pl.col("base")
    )
    return {
        str(arm): mean(own.sort("warm")["gap"].to_list())
        for (arm,), own in paired.group_by("arm", maintain_order=True)
    }


def _arms(runs: pl.DataFrame) -> str:
    by_arm = {str(arm): own for (arm,), own in runs.group_by("arm", maintain_order=True)}
    order = sorted(by_arm.items(), key=lambda item: -_of(item[1], "end").value)
    return table(
        [
            *("arm", "rate", "pairs", "at first", "**at the end**", "mean of the curve"),
            *("training boards, at the end", "steps with credit", "mean of abs A", "seconds"),
        ],
        [
            [
                *(f"`{arm}`", f"{own['rate'][0]:g}", str(own.height)),
                f"{_of(own, 'begin').value:.3f}",
                *(interval(_of(own, column), 3) for column in ("end", "mean", "training")),
                f"{_of(own, 'with_credit').value:.0%}",
                f"{_of(own, 'size_of_credit').value:.2f}",
                f"{_of(own, 'seconds').value:.0f}",
            ]
            for arm, own in order
        ],
    )


def _gaps(runs: pl.DataFrame) -> str:
    judged = [arm for arm in REFERENCES if arm in set(runs["arm"])]
    of = {
        f"{title}, to {arm}": (arm, column, gaps(runs, arm, column))
        for column, title in (("end", "at the end"), ("mean", "mean of the curve"))
        for arm in judged
    }
    arms = runs["arm"].unique(maintain_order=True).to_list()
    return table(
        ["arm", *of, *(f"ahead of {arm}" for arm in judged)],
        [
            [
                f"`{arm}`",
                *(ranged(gap[arm], 3) for _, _, gap in of.values()),
                *(_ahead(runs, arm, reference) for reference in judged),
            ]
            for arm in arms
        ],
    )


def _ahead(runs: pl.DataFrame, arm: str, reference: str) -> str:
    """Return in how many pairs an arm ends higher."""
    one, other = (runs.filter(arm=name).sort("warm") for name in (arm, reference))
    both = one.join(other, on="warm", suffix="_other", maintain_order="left")
    return f"{both.filter(pl.col('end') > pl.col('end_other')).height} of {both.height}"


def _sweep(rows: pl.DataFrame) -> str:
    swept = ends(rows.filter(pl.col("warm").is_in(TUNING_WARMS)))
    of: Mapping[tuple[str, float], float] = {
        (arm, rate): value
        for arm, rate, value in swept.group_by("arm", "rate").agg(pl.col("end").mean()).iter_rows()
    }
    arms = swept["arm"].unique().sort().to_list()
    return table(
        ["arm", *(f"rate {rate:g}" for rate in RATES)],
        [[f"`{arm}`", *(f"{of[arm, rate]:.3f}" for rate in RATES)] for arm in arms],
    )


def _of(runs: pl.DataFrame, column: str) -> Mean:
    return mean(runs.sort("warm")[column].to_list())
