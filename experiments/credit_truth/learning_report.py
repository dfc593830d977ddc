"""Tables of tabular learning curves."""

import polars as pl

from experiments.credit_truth.averages import CREDIT, averages, differences, reported, tuned
from experiments.credit_truth.report import REFERENCES
from experiments.markdown import interval, names, number, ranged, sections, table


def tables(curves: pl.DataFrame) -> str:
    """Return all tables of the rows of `learning.learn`."""
    return sections(
        {
            "Tabular learning, one rate for all worlds": _learning(tuned(curves, by_world=False)),
            "Mean success, by rate": _by_rate(curves),
            "Tabular learning, a rate for each world": _learning(tuned(curves)),
        }
    )


def _by_rate(curves: pl.DataFrame) -> str:
    means_at = averages(reported(curves), ["mean"], [*CREDIT, "rate"])
    rates: list[float] = curves["rate"].unique().sort().to_list()
    means = {
        key[:-1]: [means_at[*key[:-1], rate]["mean"].value for rate in rates] for key in means_at
    }
    return table(
        ["credit", "lists", *(f"rate {rate:g}" for rate in rates)],
        [
            [*names(key), *map(number, of)]
            for key, of in sorted(means.items(), key=lambda item: -max(item[1]))
        ],
    )


def _learning(chosen: pl.DataFrame) -> str:
    means = averages(chosen, ["mean", "final", "stuck"], CREDIT)
    order = sorted(means.items(), key=lambda item: -item[1]["mean"].value)
    judged = [name for name in REFERENCES if name in set(chosen["credit"])]
    gaps = [differences(chosen, name, "mean") for name in judged]
    return table(
        [
            *("credit", "lists", "mean success", "final success", "stuck"),
            *(f"mean, to {name}" for name in judged),
        ],
        [
            [
                *names(key),
                *(interval(of[name]) for name in ("mean", "final")),
                f"{of['stuck'].value:.0%}",
                *(ranged(gap[key]) for gap in gaps),
            ]
            for key, of in order
        ],
    )
