"""Spearman's rank correlation; equal values share their mean rank."""

import polars as pl

_DIGITS = 9
"""Smaller differences of the truth are rounding."""


def spearman_within(steps: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return the correlation of credit with the truth within each group of steps.

    Args:
        steps: Columns `credit`, `truth`, which may be null, and the keys.
        keys: Columns that name a group.

    Returns:
        A row for each group, in order of appearance: the keys, `num_steps` with a truth, and
        `correlation`: 0 where the credit is constant, null where the truth is.
    """
    is_known = pl.col("truth").is_not_null()
    credit, truth = (pl.col(name).filter(is_known) for name in ("credit", "truth"))
    truth = truth.round(_DIGITS)
    correlation = pl.corr(credit, truth, method="spearman").fill_nan(0.0)
    return steps.group_by(keys, maintain_order=True).agg(
        num_steps=truth.len(), correlation=pl.when(truth.n_unique() > 1).then(correlation)
    )


def spearman(credit: pl.Series, truth: pl.Series) -> float:
    """Return the correlation of two series; NaN where the truth is constant."""
    steps = pl.DataFrame({"credit": credit, "truth": truth, "all": 0})
    (correlation,) = spearman_within(steps, "all")["correlation"]
    return float("nan") if correlation is None else correlation
