"""Tables of whether credit can be believed: what it gains, what its value says, where it is 0."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from experiments.credit_truth.averages import averages, by_world
from experiments.credit_truth.belief import BINS, CALIBRATION, CENTRE
from experiments.markdown import frame, interval, names, number, sections, table

_GAINS = ("one", "many")


def tables(rows: pl.DataFrame, *, in_worlds: bool = False) -> str:
    """Return the tables of the rows of `believe.judge_case`; those of each kind too, if asked."""
    valued = rows.filter(pl.col("rmse").is_not_null())
    known = rows.filter(pl.col("alone_mean").is_not_null())
    texts = {
        "Fraction of the true gain, 1 / 16 groups": _grid(rows, "kind", _GAINS, 2),
        "Fraction of the true gain, with intervals": _intervals(rows),
        "Value: mean error at first steps / RMSE / RMSE of the group's mean return": _grid(
            valued, "kind", CALIBRATION, 3
        ),
        "Reliability of the value": _reliability(valued),
        "Credit where nothing can be told, in units of groups that won some": _centre(known),
        "Fraction in long worlds, 1 / 16 groups": _grid(
            rows.filter(kind="long"), "world", _GAINS, 2
        ),
        "Fraction in batches": _grid(rows.filter(kind="mixed"), "world", _GAINS[1:], 2),
    }
    if in_worlds:
        for (kind,), own in rows.group_by("kind", maintain_order=True):
            texts[f"{kind}, by world"] = _grid(own, "world", _GAINS, 2)
            texts[f"{kind}, by policy"] = _grid(own, "policy", _GAINS, 2)
    return sections(texts)


def reliability(rows: pl.DataFrame, credit: str = "reach") -> pl.DataFrame:
    """Return for each bin of values: steps, and the means of value, exact V and return there."""
    bins = np.array(rows.filter(pl.col("bins").is_not_null(), credit=credit)["bins"].to_list())
    count, *sums = bins.sum(0)
    mean = {
        name: total / np.maximum(count, 1)
        for name, total in zip(("value", "exact V", "return"), sums, strict=True)
    }
    edges = [f"{place / BINS:.1f} to {(place + 1) / BINS:.1f}" for place in range(BINS)]
    found = pl.DataFrame({"value between": edges, "steps": count.astype(np.int64), **mean})
    return found.filter(pl.col("steps") > 0)


def _reliability(rows: pl.DataFrame) -> str:
    return frame(reliability(rows)) if "reach" in set(rows["credit"]) else ""


def _intervals(rows: pl.DataFrame) -> str:
    found = averages(rows, _GAINS, ["credit", "kind"])
    kinds = rows["kind"].unique(maintain_order=True).to_list()
    columns = [
        (kind, name, groups)
        for kind in kinds
        for name, groups in (("one", "1 group"), ("many", "16"))
        if kind != "mixed" or name == "many"
    ]
    return table(
        ["credit", *(f"{kind}, {groups}" for kind, _, groups in columns)],
        [
            [
                *names((credit, ""))[:1],
                *(interval(found[credit, kind][name]) for kind, name, _ in columns),
            ]
            for credit in rows["credit"].unique(maintain_order=True)
        ],
    )


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
