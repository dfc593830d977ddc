"""Tables of whether credit can be believed: what it gains, what its value says, where it is 0."""

from collections.abc import Sequence

import polars as pl

from experiments.credit_truth.averages import by_world
from experiments.credit_truth.belief import CALIBRATION, CENTRE
from experiments.markdown import names, number, sections, table

_GAINS = ("one", "many")


def tables(rows: pl.DataFrame, *, in_worlds: bool = False) -> str:
    """Return the tables of the rows of `believe.judge_case`; those of each world too, if asked."""
    has_value = rows.filter(pl.col("rmse").is_not_null())
    judged = rows.filter(pl.col("alone_mean").is_not_null())
    texts = {
        "Fraction of the true gain, 1 / 16 groups": _grid(rows, "kind", _GAINS, 2),
        "Value: mean error at first steps / RMSE / RMSE of the group's mean return": _grid(
            has_value, "kind", CALIBRATION, 3
        ),
        "Credit where nothing can be told, in units of groups that won some": _centre(judged),
    }
    if in_worlds:
        for (kind,), own in rows.group_by("kind", maintain_order=True):
            texts[f"{kind}, by world"] = _grid(own, "world", _GAINS, 2)
            texts[f"{kind}, by policy"] = _grid(own, "policy", _GAINS, 2)
    return sections(texts)


def _grid(rows: pl.DataFrame, column: str, figures: Sequence[str], digits: int) -> str:
    """Return the means over worlds of some figures, by the values of a column."""
    titled = rows.with_columns(title=column)
    means = (
        by_world(titled, figures, ["credit", "title"])
        .group_by("credit", "title")
        .agg(pl.col(figures).mean())
    )
    of = {row[:2]: " / ".join(_text(each, digits) for each in row[2:]) for row in means.iter_rows()}
    titles = rows[column].unique(maintain_order=True).to_list()
    return table(
        ["credit", *titles],
        [
            [*names((credit, ""))[:1], *(of.get((credit, title), "") for title in titles)]
            for credit in rows["credit"].unique(maintain_order=True)
        ],
    )


def _centre(rows: pl.DataFrame) -> str:
    """Return for each figure its mean over cases; of a largest credit, the largest."""
    columns = [
        pl.col(name).max() if name.endswith("_max") else pl.col(name).mean() for name in CENTRE
    ]
    found = rows.group_by("credit", maintain_order=True).agg(columns)
    lines = [
        [*names((row[0], ""))[:1], *(_text(each, 2) for each in row[1:])] for row in found.rows()
    ]
    return table(["credit", *(name.replace("_", ", ") for name in CENTRE)], lines)


def _text(value: float | None, digits: int) -> str:
    return "–" if value is None else number(value, digits)
