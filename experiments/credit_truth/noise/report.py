"""Tables of what credit is worth under noise."""

import polars as pl

from experiments.credit_truth.averages import averages
from experiments.credit_truth.noise.judge import NONE
from experiments.markdown import interval, number, sections, table


def tables(rows: pl.DataFrame) -> str:
    """Return all tables.

    Args:
        rows: Rows of `judge.judge_noisy`.
    """
    return sections(
        {
            "Fraction of the true gain with one group, by noise": _by_noise(rows),
            "Mean over the kinds of noise": _overall(rows.filter(pl.col("noise") != NONE)),
            "Recall (precision) of the states": _states(rows),
            "Where two states became one": _mistaken(rows),
        }
    )


def _by_noise(rows: pl.DataFrame) -> str:
    """Return the fraction by estimator and merge, over both kinds of list."""
    found = averages(rows, ["fraction"], ["noise", "merge", "credit"])
    columns = [
        (credit, merge)
        for credit, merge in rows.select("credit", "merge").unique(maintain_order=True).rows()
        # States play no part in GRPO.
        if credit != "grpo" or merge == "exact"
    ]
    columns.sort(key=lambda column: (column[0] != "grpo", column[0]))
    return table(
        ["noise", *(credit if credit == "grpo" else f"{credit}, {m}" for credit, m in columns)],
        [
            [noise, *(number(found[noise, m, credit]["fraction"].value) for credit, m in columns)]
            for noise in rows["noise"].unique(maintain_order=True)
        ],
    )


def _overall(rows: pl.DataFrame) -> str:
    found = averages(rows, ["fraction"], ["credit", "merge", "lists"])
    return table(
        ["credit", "merge", "lists", "fraction"],
        [
            [f"`{credit}`", str(merge), str(lists), interval(of["fraction"])]
            for (credit, merge, lists), of in sorted(found.items(), key=lambda item: str(item[0]))
        ],
    )


def _states(rows: pl.DataFrame) -> str:
    one = rows.filter(pl.col("credit") == rows["credit"][0])
    found = averages(one, ["precision", "recall"], ["noise", "merge", "lists"])
    columns = one.select("merge", "lists").unique(maintain_order=True).rows()

    def both(noise: str, merge: str, lists: str) -> str:
        of = found[noise, merge, lists]
        return f"{number(of['recall'].value, 3)} ({number(of['precision'].value, 4)})"

    return table(
        ["noise", *(f"{merge}, lists: {lists}" for merge, lists in columns)],
        [
            [noise, *(both(noise, *column) for column in columns)]
            for noise in one["noise"].unique(maintain_order=True)
        ],
    )


def _mistaken(rows: pl.DataFrame) -> str:
    """Return how many (unit, noise, lists) have a wrong pair, and the worst precision, by merge."""
    wrong = (
        rows.filter(pl.col("credit") == rows["credit"][0])
        .group_by("merge", "world", maintain_order=True)
        .agg(total=pl.len(), wrong=(pl.col("precision") < 1).sum(), worst=pl.col("precision").min())
        .filter(pl.col("wrong") > 0)
    )
    return table(
        ["merge", "world", "logs with a wrong pair", "worst precision"],
        [
            [merge, world, f"{count} of {total}", number(worst, 4)]
            for merge, world, total, count, worst in wrong.iter_rows()
        ],
    )
