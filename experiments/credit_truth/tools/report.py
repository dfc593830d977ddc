"""The table of `run.py`: what each definition of a state is worth on logs of tools."""

import polars as pl

from experiments.credit_truth.tools.log import TRUE
from experiments.markdown import interval, table
from experiments.means import mean

MOST = "the most evidence"

_LOG = ("world", "policy", "seed")


def tables(rows: pl.DataFrame) -> str:
    """Return the table as Markdown: means over the policies of a task, then over tasks."""
    best = _first_by("fraction", rows)["definition"]
    share = {name: f"{(best == name).mean():.0%}" for name in best.unique()}
    rows = pl.concat([rows, with_most_evidence(rows)])
    lines: list[list[str]] = []
    for (name,), of_name in rows.group_by("definition", maintain_order=True):
        known = [of_name[column].mean() for column in ("company", "evidence")]
        shown = ["" if value is None else f"{value:.2f}" for value in known]
        worth = [_worth(of_name, column) for column in ("fraction", "fraction_many")]
        lines.append([str(name), *shown, *worth, share.get(str(name), "")])
    return table(["state", "company", "evidence", "1 group", "16 groups", "best rule in"], lines)


def with_most_evidence(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the rule with the most evidence in each log."""
    return _first_by("evidence", rows).with_columns(definition=pl.lit(MOST))


def _first_by(column: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the row of each log whose rule has the most of a column."""
    rules = rows.filter(pl.col("evidence").is_not_null(), pl.col("definition") != TRUE)
    return rules.sort(column, descending=True, maintain_order=True).unique(
        _LOG, keep="first", maintain_order=True
    )


def _worth(rows: pl.DataFrame, column: str) -> str:
    of_world = rows.group_by("world", maintain_order=True).agg(pl.col(column).mean())
    return interval(mean(of_world[column].to_list()))
