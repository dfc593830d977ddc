"""Tables of `run.py`: what each definition is worth and what evidence says, and how they agree."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from experiments.means import mean
from experiments.ranks import spearman

_WORTHS = ("reach 1", "reach 16", "graphgpo 1", "graphgpo 16")
_RULES = ("recommended", "evidence", "information", "guidance", "company")
_NEAR = ("true", "split in 2", "split in 4", "with time", "two views")
"""Definitions that unite nothing that differs."""


def tables(rows: pl.DataFrame) -> str:
    """Return the tables as Markdown."""
    return "\n".join([*_of_definitions(rows), "", *_of_rules(rows)]) + "\n"


def _of_definitions(rows: pl.DataFrame) -> Iterator[str]:
    worths = " | ".join(_WORTHS)
    yield f"| state | company | information | guidance | evidence | beyond chance | {worths} |"
    yield f"|{' --- |' * (6 + len(_WORTHS))}"
    for (name,), of_name in rows.group_by("definition", maintain_order=True):
        figures = [of_name[each].mean() for each in ("information", "guidance", "evidence")]
        shown = " | ".join(f"{figure:.3f}" for figure in figures)
        beyond = (of_name["beyond"] > 2 * of_name["beyond_error"]).mean()
        worth = " | ".join(f"{of_name[each].mean():.2f}" for each in _WORTHS)
        yield f"| {name} | {of_name['company'].mean():.2f} | {shown} | {beyond:.0%} | {worth} |"


def _of_rules(rows: pl.DataFrame) -> Iterator[str]:
    """Yield how well the order of each rule agrees with the worth, and what its choice costs."""
    yield "| chosen by | Spearman with `reach`, 1 group | its cost | 16 groups | cost | true |"
    yield f"|{' --- |' * 6}"
    logs = [log for _, log in rows.group_by("world", "policy", "seed", maintain_order=True)]
    for rule in _RULES:
        cells: list[str] = []
        for worth in ("reach 1", "reach 16"):
            correlations = [spearman(log[rule], log[worth]) for log in logs]
            costs = [log[worth].max() - log[worth][int(log[rule].arg_max() or 0)] for log in logs]
            cells += ["" if rule == "recommended" else _shown(correlations), _shown(costs)]
        picks = [log["definition"][int(log[rule].arg_max() or 0)] for log in logs]
        true, near = (np.mean([pick in some for pick in picks]) for some in (("true",), _NEAR))
        yield f"| {rule} | {' | '.join(cells)} | {true:.0%} ({near:.0%}) |"


def _shown(values: list[float]) -> str:
    of = mean(values)
    return f"{of.value:.2f} ({of.low:.2f} to {of.high:.2f})"
