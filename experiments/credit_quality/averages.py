"""Means over games with bootstrap confidence intervals, which draw games with replacement.

All columns use the same draws of games, so differences are paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from experiments.credit_quality.judge import STATISTICS
from graphcredit.credit.estimators.table import ESTIMATORS

DRAWS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Mean:
    """The mean of a number over games."""

    value: float
    """NaN if no game has the number."""
    low: float
    high: float
    """95 % confidence interval."""
    num_games: int
    """Games that have the number."""


def mean(values: Sequence[float | None], *, seed: int = 0) -> Mean:
    """Return the mean over the games that have a number, and its interval.

    Args:
        values: One for each game, None if it has none; always in the same order of games.
        seed: Seed of the draws of games.
    """
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    known = np.isfinite(numbers)
    if not known.any():
        return Mean(value=np.nan, low=np.nan, high=np.nan, num_games=0)
    times = _times_drawn(len(numbers), seed)
    sums, counts = times @ np.where(known, numbers, 0.0), times @ known
    low, high = np.quantile(sums[counts > 0] / counts[counts > 0], [0.025, 0.975])
    return Mean(
        value=float(numbers[known].mean()),
        low=float(low),
        high=float(high),
        num_games=int(known.sum()),
    )


def averages(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the mean and the interval of each statistic, by condition, estimator and part.

    Args:
        rows: Rows of the experiment's Parquet file.

    Returns:
        Columns `condition`, `estimator`, `part`, and for each statistic `<statistic>`,
        `<statistic>_low`, `<statistic>_high`, `<statistic>_games`.
    """
    keys = ["condition", "estimator", "part"]
    groups = rows.sort("game").group_by(keys, maintain_order=True)
    return pl.DataFrame([dict(zip(keys, key, strict=True)) | _averaged(own) for key, own in groups])


def differences(rows: pl.DataFrame, statistic: str, reference: tuple[str, str]) -> pl.DataFrame:
    """Return the mean paired difference of a statistic to a reference, and its interval.

    Args:
        rows: Rows of one condition.
        statistic: One of `STATISTICS`.
        reference: Estimator and part that others are compared with.

    Returns:
        Columns `estimator`, `part`, `difference`, `low`, `high`; the reference has no row.
    """
    of = {
        (str(estimator), str(part)): own.sort("game").select("game", statistic)
        for (estimator, part), own in rows.group_by("estimator", "part", maintain_order=True)
    }
    base = of.pop(reference)
    found: list[dict[str, object]] = []
    for (estimator, part), own in of.items():
        gap = own.join(base, on="game", suffix="_base", maintain_order="left").select(
            pl.col(statistic) - pl.col(f"{statistic}_base")
        )
        average = mean(gap[statistic].to_list())
        found.append(
            {
                "estimator": estimator,
                "part": part,
                "difference": average.value,
                "low": average.low,
                "high": average.high,
            }
        )
    return pl.DataFrame(found)


def step_or_total(rows: pl.DataFrame) -> list[tuple[str, str]]:
    """Return the step part of each estimator, or its advantage if it has none.

    Args:
        rows: Table with columns `estimator` and `part`.

    Returns:
        (estimator, part), in the order of the table of estimators.
    """
    parts: dict[str, set[str]] = {}
    for estimator, part in rows.select("estimator", "part").unique().iter_rows():
        parts.setdefault(estimator, set()).add(part)
    names = [row.name for row in ESTIMATORS if row.name in parts]
    return [(name, "step" if "step" in parts[name] else "total") for name in names]


def _averaged(rows: pl.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {}
    for statistic in STATISTICS:
        average = mean(rows[statistic].to_list())
        found |= {
            statistic: average.value,
            f"{statistic}_low": average.low,
            f"{statistic}_high": average.high,
            f"{statistic}_games": average.num_games,
        }
    return found


@cache
def _times_drawn(num_games: int, seed: int) -> NDArray[np.float64]:
    """Return [DRAWS, num_games] how often each game is drawn."""
    even = np.full(num_games, 1 / num_games)
    return np.random.default_rng(seed).multinomial(num_games, even, size=DRAWS).astype(np.float64)
