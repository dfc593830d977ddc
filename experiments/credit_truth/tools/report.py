"""The table of `run.py`: what each definition of a state is worth on logs of tools."""

import polars as pl

from experiments.credit_truth.tools.log import TRUE
from experiments.means import mean

_WORTHS = ("fraction", "fraction_many")


def tables(rows: pl.DataFrame) -> str:
    """Return the table as Markdown: means over the policies of a task, then over tasks."""
    heads = ("state", "company", "evidence", "1 group", "16 groups", "best rule in")
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    rows = pl.concat([rows, recommended(rows)])
    logs = rows.n_unique(["world", "policy", "seed"])
    best = _first_by("fraction", _rules(rows))["definition"].value_counts()
    wins = dict(best.iter_rows())
    for (name,), of_name in rows.group_by("definition", maintain_order=True):
        known = [of_name[column].mean() for column in ("company", "evidence")]
        shown = ["" if value is None else f"{value:.2f}" for value in known]
        worth = [_shown(of_name, column) for column in _WORTHS]
        share = f"{wins[name] / logs:.0%}" if name in wins else ""
        lines.append(f"| {' | '.join([str(name), *shown, *worth, share])} |")
    return "\n".join(lines) + "\n"


def recommended(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the rule with the most evidence in each log."""
    return _first_by("evidence", _rules(rows)).with_columns(definition=pl.lit("recommended"))


def _rules(rows: pl.DataFrame) -> pl.DataFrame:
    is_rule = pl.col("evidence").is_not_null() & ~pl.col("definition").is_in([TRUE, "recommended"])
    return rows.filter(is_rule)


def _first_by(column: str, rows: pl.DataFrame) -> pl.DataFrame:
    of_log = ["world", "policy", "seed"]
    return rows.sort(column, descending=True, maintain_order=True).unique(
        of_log, keep="first", maintain_order=True
    )


def _shown(rows: pl.DataFrame, column: str) -> str:
    of_world = rows.group_by("world", maintain_order=True).agg(pl.col(column).mean())
    of = mean(of_world[column].to_list())
    return f"{of.value:.2f} ({of.low:.2f} to {of.high:.2f})"
