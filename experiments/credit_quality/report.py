"""Write the results of the experiment as Markdown tables."""

from collections.abc import Mapping, Sequence

import polars as pl

from experiments.credit_quality.averages import differences, mean, step_or_total
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
from experiments.credit_quality.games import by_kind
from experiments.credit_quality.judge import STATISTICS

REFERENCES: tuple[tuple[str, str], ...] = (("graphgpo", "step"), ("rewardflow", "step"))
"""The two best published columns, with which the others are compared."""

_TITLES: Mapping[str, str] = {
    "over_all": "rank correlation, all steps",
    "over_failed": "rank correlation, failures",
    "sign_agreement": "right sign",
    "silent_share": "steps at 0",
}


def tables(rows: pl.DataFrame, found: pl.DataFrame) -> str:
    """Return all tables, beginning with the table of the base condition.

    Args:
        rows: Rows of all conditions.
        found: Their `averages`.
    """
    base = rows.filter(condition=BASE.name)
    sections = {
        "Base condition": first_table(base, found),
        "All numbers of the base condition": _full_table(found),
        "Differences of rank correlation, paired by game": _gaps(base),
        "By kind of game": _by_kind(base),
        "By policy and size of group": _grid(
            found,
            {
                f"{epsilon:g}, {size}": Condition(epsilon=epsilon, group_size=size)
                for epsilon in EPSILONS
                for size in GROUP_SIZES
            },
        ),
        **{
            f"By noise, merge {merge}": _grid(
                found, {noise: Condition(noise=noise, merge=merge) for noise in NOISES}
            )
            for merge in MERGES
        },
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


def first_table(base: pl.DataFrame, found: pl.DataFrame) -> str:
    """Return the table of the base condition, with the best estimator first.

    `steps at 0` is the share of steps whose step part is exactly 0, and `groups at 0` that of the
    groups in which it is 0 at every step. A step part that is not 0 need not say anything of its
    own step: where the group's mean is subtracted, it may be that mean alone.

    Args:
        base: Rows of the base condition.
        found: Result of `averages`.
    """
    of = _by_column(found, BASE)
    at_zero = {
        (str(estimator), str(part)): float((own["silent_share"] == 1).to_numpy().mean())
        for (estimator, part), own in base.group_by("estimator", "part")
    }
    names = sorted({estimator for estimator, _ in of}, key=lambda name: -_best(of, name))
    return _table(
        [
            *("estimator", "advantage", "… in failures", "step part", "… in failures"),
            *("steps at 0", "groups at 0"),
        ],
        [
            [
                f"`{name}`",
                *(
                    _interval(of.get((name, part)), statistic)
                    for part in ("total", "step")
                    for statistic in ("over_all", "over_failed")
                ),
                _share(of[name, "step"]["silent_share"] if (name, "step") in of else None),
                _share(at_zero.get((name, "step"))),
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
    of = {
        (reference, statistic): {
            (row["estimator"], row["part"]): "{difference:+.3f} ({low:+.3f} to {high:+.3f})".format(
                **row
            )
            for row in differences(base, statistic, reference).to_dicts()
        }
        for reference in REFERENCES
        for statistic in ("over_all", "over_failed")
    }
    return _table(
        [
            "column",
            *(f"{' '.join(reference)}: {_TITLES[statistic]}" for reference, statistic in of),
        ],
        [
            [" ".join(column), *(gaps.get(column, "–") for gaps in of.values())]
            for column in step_or_total(base)
        ],
    )


def _by_kind(base: pl.DataFrame) -> str:
    kinds = by_kind(tuple(base["game"].unique(maintain_order=True)))

    def cell(own: pl.DataFrame, kind: str) -> str:
        of_kind = own.filter(kind=kind).sort("game")
        return " · ".join(
            _number(mean(of_kind[statistic].to_list()).value)
            for statistic in ("over_all", "over_failed")
        )

    return _table(
        ["all · failures", *(f"{kind} ({len(games)})" for kind, games in kinds.items())],
        [
            [
                f"{estimator} {part}",
                *(cell(base.filter(estimator=estimator, part=part), kind) for kind in kinds),
            ]
            for estimator, part in step_or_total(base)
        ],
    )


def _grid(found: pl.DataFrame, conditions: Mapping[str, Condition]) -> str:
    """Return the rank correlations of each estimator's step part under some conditions."""
    of = {title: _by_column(found, condition) for title, condition in conditions.items()}
    name = next(iter(conditions.values())).name
    return _table(
        ["all · failures", *of],
        [
            [
                " ".join(column),
                *(
                    f"{_number(rows[column]['over_all'])} · {_number(rows[column]['over_failed'])}"
                    for rows in of.values()
                ),
            ]
            for column in step_or_total(found.filter(condition=name))
        ],
    )


def by_condition(found: pl.DataFrame, conditions: Mapping[str, Condition]) -> str:
    """Return the rank correlations of each estimator's advantage and step part.

    Args:
        found: Result of `averages`.
        conditions: Titles of the columns; estimators are sorted by the first one.
    """
    of = {title: _by_column(found, condition) for title, condition in conditions.items()}
    first = next(iter(of.values()))
    names = sorted({estimator for estimator, _ in first}, key=lambda name: -_best(first, name))
    return _table(
        ["estimator", *(f"{part}, {title}" for title in of for part in ("advantage", "step part"))],
        [
            [
                f"`{name}`",
                *(
                    _interval(rows.get((name, part)), "over_all")
                    for rows in of.values()
                    for part in ("total", "step")
                ),
            ]
            for name in names
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
    return f"{_number(row[statistic])} ± {half:.2f}"


def _number(value: float) -> str:
    """Return a number with two decimals; zero has no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    every = [titles, ["---"] * len(titles), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every) + "\n"
