"""Tables of `run.py`: what each definition is worth and what evidence says, and how they agree."""

from typing import Any

import numpy as np
import polars as pl

from experiments.markdown import interval, number, table
from experiments.means import mean
from experiments.ranks import spearman

_WORTHS = ("reach 1", "reach 16", "graphgpo 1", "graphgpo 16")
_TOLD = ("information", "guidance", "evidence")
_RULES = ("recommended", "evidence", "information", "guidance", "company")
_NEAR = ("true", "split in 2", "split in 4", "with time", "two views")
"""Definitions that unite nothing that differs."""


def tables(rows: pl.DataFrame) -> str:
    """Return the tables as Markdown."""
    return f"{_of_definitions(rows)}\n{_of_rules(rows)}"


def _of_definitions(rows: pl.DataFrame) -> str:
    means = rows.group_by("definition", maintain_order=True).agg(
        pl.col("company", *_TOLD, *_WORTHS).mean(),
        beyond=(pl.col("beyond") > 2 * pl.col("beyond_error")).mean(),
    )
    titles = ["state", "company", *_TOLD, "beyond chance", *(f"`{w}`" for w in _WORTHS)]
    lines = [
        [
            *(of["definition"], number(of["company"])),
            *(number(of[name], 3) for name in _TOLD),
            f"{of['beyond']:.0%}",
            *(number(of[name]) for name in _WORTHS),
        ]
        for of in means.iter_rows(named=True)
    ]
    return table(titles, lines)


def orders(rule: str, worth: str, rows: pl.DataFrame) -> list[float]:
    """Return how well a rule's order of the definitions agrees with their worth in each log."""
    return [spearman(log[rule], log[worth]) for log in _logs(rows)]


def _logs(rows: pl.DataFrame) -> list[pl.DataFrame]:
    return [log for _, log in rows.group_by("world", "policy", "seed", maintain_order=True)]


def _of_rules(rows: pl.DataFrame) -> str:
    """Return how well the order of each rule agrees with the worth, and what its choice costs."""
    return table(
        [
            *("chosen by", "Spearman with `reach`, 1 group", "cost of its choice"),
            *("16 groups", "cost", "true (or a fragment of it)"),
        ],
        [_of_rule(rule, rows) for rule in _RULES],
    )


def _of_rule(rule: str, rows: pl.DataFrame) -> list[str]:
    logs = _logs(rows)
    chosen = [
        log.sort(rule, descending=True, maintain_order=True).row(0, named=True) for log in logs
    ]
    cells = [rule]
    for worth in _WORTHS[:2]:
        costs = [
            _first_by(worth, log)[worth] - row[worth] for log, row in zip(logs, chosen, strict=True)
        ]
        order = "" if rule == "recommended" else interval(mean(orders(rule, worth, rows)))
        cells += [order, interval(mean(costs))]
    picks = [row["definition"] for row in chosen]
    true, near = (np.mean([pick in some for pick in picks]) for some in (("true",), _NEAR))
    return [*cells, f"{true:.0%} ({near:.0%})"]


def _first_by(column: str, log: pl.DataFrame) -> dict[str, Any]:
    return log.sort(column, descending=True, maintain_order=True).row(0, named=True)
