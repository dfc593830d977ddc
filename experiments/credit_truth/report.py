"""Tables of what credit is worth to a step of learning."""

from collections.abc import Mapping

import polars as pl

from experiments.credit_truth.averages import (
    CREDIT,
    STATISTICS,
    averages,
    by_wins,
    by_world,
    differences,
)
from experiments.credit_truth.credit import REFERENCES as KNOWING
from experiments.credit_truth.judge import MANY, WINS
from experiments.credit_truth.settings import TUNED
from experiments.markdown import interval, names, number, ranged, sections, table
from experiments.means import Mean

REFERENCES: tuple[str, ...] = ("grpo", "graft, tuned", "discounted, tuned")
"""Credits with which the others are compared, if they were judged."""

CHIEF: frozenset[tuple[str, str]] = frozenset(
    [
        *KNOWING,
        *((name, "") for name in ("grpo", "graphgpo", *TUNED)),
        *(("reach", lists) for lists in ("exact", "none")),
    ]
)
"""Credits that the tables by policy, world and number of wins have; the first table has all."""


def tables(rows: pl.DataFrame) -> str:
    """Return all tables of the rows of `judge.judge`."""
    of_chief = [key in CHIEF for key in rows.select(CREDIT).iter_rows()]
    chief = rows.filter(pl.Series(of_chief, dtype=pl.Boolean))
    one = chief.filter(num_groups=1)
    texts = {
        "Fraction with one group, by its number of wins": _by_wins(chief),
        "Fraction of the true gain": first_table(rows),
        "Differences of the fraction, paired by world": _gaps(chief),
        "Fraction with one group, by policy": _grid(one, "policy"),
        "Fraction with one group, by world": _grid(one, "world"),
        f"Fraction with {MANY} groups, by world": _grid(chief.filter(num_groups=MANY), "world"),
    }
    return sections(texts)


def first_table(rows: pl.DataFrame) -> str:
    """Return the mean over worlds of every statistic, the best fraction with one group first."""
    means = averages(rows, STATISTICS, [*CREDIT, "num_groups"])
    one = {key[:2]: of for key, of in means.items() if key[2] == 1}
    return table(
        [
            *("credit", "lists", "fraction, 1 group", f"fraction, {MANY} groups"),
            *("cosine, 1 group", "Spearman with Q − V", "no gradient"),
        ],
        [
            [
                *names(key),
                interval(of["fraction"]),
                interval(means[*key, MANY]["fraction"]),
                interval(of["cosine"]),
                interval(of["spearman"]),
                f"{of['silent'].value:.0%}",
            ]
            for key, of in _by_fraction(one)
        ],
    )


def _by_wins(rows: pl.DataFrame) -> str:
    """Return the fraction by the number of wins, and which share of the groups has it."""
    groups = rows.filter(num_groups=1)["groups_by_wins"]
    number = groups.list.to_array(len(WINS)).to_numpy().sum(0)
    every = averages(rows.filter(num_groups=1), ["fraction"], CREDIT)
    kinds = [
        f"{wins} ({share:.0%})" for wins, share in zip(WINS, number / number.sum(), strict=True)
    ]
    order = sorted(by_wins(rows).items(), key=lambda item: -every[item[0]]["fraction"].value)
    return table(
        ["credit", "lists", *kinds, "all groups"],
        [[*names(key), *map(interval, of), interval(every[key]["fraction"])] for key, of in order],
    )


def _gaps(rows: pl.DataFrame) -> str:
    judged = [name for name in REFERENCES if name in set(rows["credit"])]
    of = {
        f"to {name}, {num_groups} group{'s' * (num_groups > 1)}": differences(
            rows.filter(num_groups=num_groups), name
        )
        for name in judged
        for num_groups in (1, MANY)
    }
    keys = rows.select(CREDIT).unique(maintain_order=True).iter_rows()
    return table(
        ["credit", "lists", *of],
        [[*names(key), *(ranged(gaps[key]) for gaps in of.values())] for key in keys],
    )


def _grid(rows: pl.DataFrame, column: str) -> str:
    """Return the mean fraction by the values of a column."""
    keys = rows.select(CREDIT).unique(maintain_order=True).iter_rows()
    titles = rows[column].unique(maintain_order=True).to_list()
    of = {
        (credit, lists, title): float(own["fraction"].to_numpy().mean())
        for title in titles
        for (credit, lists), own in by_world(
            rows.filter(pl.col(column) == title), ["fraction"], CREDIT
        ).group_by(*CREDIT)
    }
    return table(
        ["credit", "lists", *titles],
        [[*names(key), *(number(of[*key, title]) for title in titles)] for key in keys],
    )


def _by_fraction(
    found: Mapping[tuple[object, ...], Mapping[str, Mean]],
) -> list[tuple[tuple[object, ...], Mapping[str, Mean]]]:
    return sorted(found.items(), key=lambda item: -item[1]["fraction"].value)
