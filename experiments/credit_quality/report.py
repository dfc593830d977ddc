"""What the experiment found, as Markdown tables."""

from collections.abc import Mapping, Sequence

import polars as pl

from experiments.credit_quality.averages import differences, mean
from experiments.credit_quality.conditions import (
    BASE,
    EPSILONS,
    GROUP_SIZES,
    MERGES,
    NOISES,
    OPTIONS,
    WINDOWS,
    Condition,
)
from experiments.credit_quality.judge import STATISTICS

REFERENCE = ("graphgpo", "step")
"""The best published column that the differences are taken to."""

_TITLES: Mapping[str, str] = {
    "over_all": "rank correlation, all steps",
    "over_failed": "rank correlation, failures",
    "sign_agreement": "right sign",
    "silent_share": "no signal",
}


def tables(rows: pl.DataFrame, found: pl.DataFrame) -> str:
    """Return all tables, that of the README's first page first.

    Args:
        rows: Of all conditions.
        found: Their `averages`.
    """
    base = rows.filter(condition=BASE.name)
    sections = {
        "Base condition": first_table(found),
        "All numbers of the base condition": _full_table(found),
        f"Difference of rank correlation to {' '.join(REFERENCE)}, paired by game": _gaps(base),
        "By kind of game": _by_kind(base),
        "By policy and size of group": _grid(
            found,
            {
                f"{epsilon:g}, {size}": Condition(epsilon=epsilon, group_size=size)
                for epsilon in EPSILONS
                for size in GROUP_SIZES
            },
        ),
        "By noise and merge": _grid(
            found,
            {
                f"{noise}, {merge}": Condition(noise=noise, merge=merge)
                for noise in NOISES
                for merge in MERGES
            },
        ),
        "By iterations in the graph": _grid(
            found, {str(window): Condition(window=window) for window in WINDOWS}
        ),
        "Other options": _options(found),
        "Questions of the environment search, by policy": _grid(
            found,
            {
                f"{epsilon:g}": Condition(environment="search", epsilon=epsilon)
                for epsilon in EPSILONS
            },
        ),
    }
    return "\n".join(f"## {title}\n\n{table}" for title, table in sections.items())


def first_table(found: pl.DataFrame) -> str:
    """Return the table of the first page: the base condition, the best first.

    Args:
        found: From `averages`.
    """
    of = _by_column(found, BASE)
    names = sorted({estimator for estimator, _ in of}, key=lambda name: -_best(of, name))
    return _table(
        ["estimator", "advantage", "… in failures", "step part", "… in failures", "no signal"],
        [
            [
                f"`{name}`",
                *(
                    _interval(of.get((name, part)), statistic)
                    for part in ("total", "step")
                    for statistic in ("over_all", "over_failed")
                ),
                _share(of.get((name, "step"))),
            ]
            for name in names
        ],
    )


def _full_table(found: pl.DataFrame) -> str:
    of = _by_column(found, BASE)
    return _table(
        ["column", *(f"{title} (95 %; games)" for title in _TITLES.values())],
        [
            [
                f"{name} {part}",
                *(
                    f"{row[s]:.3f} ({row[f'{s}_low']:.3f} to {row[f'{s}_high']:.3f}; "
                    f"{row[f'{s}_games']})"
                    for s in STATISTICS
                ),
            ]
            for (name, part), row in of.items()
        ],
    )


def _gaps(base: pl.DataFrame) -> str:
    gaps = {
        statistic: {
            (row["estimator"], row["part"]): row
            for row in differences(base, statistic, REFERENCE).to_dicts()
        }
        for statistic in ("over_all", "over_failed")
    }
    return _table(
        ["column", *(_TITLES[statistic] for statistic in gaps)],
        [
            [
                " ".join(column),
                *(
                    "{difference:+.3f} ({low:+.3f} to {high:+.3f})".format(**of[column])
                    for of in gaps.values()
                ),
            ]
            for column in gaps["over_all"]
        ],
    )


def _by_kind(base: pl.DataFrame) -> str:
    kinds = base["kind"].unique(maintain_order=True).to_list()
    groups = base.group_by("estimator", "part", maintain_order=True)

    def cell(own: pl.DataFrame, kind: str) -> str:
        of_kind = own.filter(kind=kind).sort("game")
        return " · ".join(
            f"{mean(of_kind[statistic].to_list()).value:.2f}"
            for statistic in ("over_all", "over_failed")
        )

    return _table(
        ["column (all · failures)", *kinds],
        [
            [f"{estimator} {part}", *(cell(own, kind) for kind in kinds)]
            for (estimator, part), own in groups
        ],
    )


def _grid(found: pl.DataFrame, conditions: Mapping[str, Condition]) -> str:
    """Return the rank correlations of every column under some conditions."""
    of = {title: _by_column(found, condition) for title, condition in conditions.items()}
    columns = list(next(iter(of.values())))
    return _table(
        ["column (all · failures)", *of],
        [
            [
                " ".join(column),
                *(
                    f"{rows[column]['over_all']:.2f} · {rows[column]['over_failed']:.2f}"
                    for rows in of.values()
                ),
            ]
            for column in columns
        ],
    )


def _options(found: pl.DataFrame) -> str:
    return _table(
        ["option", "part", *(_TITLES[s] for s in STATISTICS)],
        [
            [f"`{option}`", part, *(_interval(row, s) for s in STATISTICS)]
            for option in OPTIONS
            for (_, part), row in _by_column(found, Condition(option=option)).items()
        ],
    )


def _by_column(
    found: pl.DataFrame, condition: Condition
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the averages of a condition by (estimator, part)."""
    rows = found.filter(condition=condition.name).to_dicts()
    return {(row["estimator"], row["part"]): row for row in rows}


def _best(of: Mapping[tuple[str, str], Mapping[str, float]], name: str) -> float:
    return max(row["over_all"] for (estimator, _), row in of.items() if estimator == name)


def _interval(row: Mapping[str, float] | None, statistic: str) -> str:
    if row is None:
        return "–"
    half = (row[f"{statistic}_high"] - row[f"{statistic}_low"]) / 2
    return f"{row[statistic]:.2f} ± {half:.2f}"


def _share(row: Mapping[str, float] | None) -> str:
    return "–" if row is None else f"{row['silent_share']:.0%}"


def _table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    every = [titles, ["---"] * len(titles), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every) + "\n"
