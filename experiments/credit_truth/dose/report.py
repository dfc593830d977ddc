"""Print what is left of the differences between credits at an equal dose, as Markdown tables.

python -m experiments.credit_truth.dose.report results
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from experiments.credit_quality.averages import mean
from experiments.credit_truth.averages import CREDIT, averages, by_world, differences
from experiments.credit_truth.dose import judge, learning
from experiments.credit_truth.judge import MANY
from experiments.credit_truth.markdown import interval, names, number, ranged, table
from experiments.credit_truth.within_views import ranks_within

_FRACTIONS: Mapping[str, str] = {"fraction_1": "1 group", f"fraction_{MANY}": f"{MANY} groups"}
_DOSES: tuple[str, ...] = ("steps", "groups", "size")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    learnt = out / "dose-learning.parquet"
    print(
        dose_tables(
            pl.read_parquet(out / "dose.parquet"),
            pl.read_parquet(learnt) if learnt.exists() else None,
        )
    )


def dose_tables(rows: pl.DataFrame, curves: pl.DataFrame | None) -> str:
    """Return all tables.

    Args:
        rows: Rows of `judge.judge_dose`.
        curves: Rows of `learning.learn_at_equal_dose`; None without learning.
    """
    runs = None
    if curves is not None:
        of_curve = pl.col("curve").list
        runs = curves.with_columns(mean=of_curve.mean(), final=of_curve.last())
    sections = {
        "Dose as it is, and the fraction of the true gain": _fractions(rows),
        "What of the differences between estimators is dose": explained(rows, runs),
    }
    if runs is not None:
        sections[f"Tabular learning at the rate {learning.RATE:g}"] = _learning(runs)
    return "\n".join(f"## {title}\n\n{text}" for title, text in sections.items())


def _fractions(rows: pl.DataFrame) -> str:
    found = averages(rows, [*_DOSES, *_FRACTIONS], [*CREDIT, "stage"])
    keys = [key[:2] for key in found if key[2] == "as is"]
    keys.sort(key=lambda key: -found[*key, "as is"]["fraction_1"].value)
    titles = [f"{title}, {stage}" for title in _FRACTIONS.values() for stage in judge.STAGES]
    lines = [
        [
            *names(key),
            *(f"{found[*key, 'as is'][dose].value:.0%}" for dose in ("steps", "groups")),
            number(found[*key, "as is"]["size"].value),
            *(
                number(found[*key, stage][name].value)
                for name in _FRACTIONS
                for stage in judge.STAGES
            ),
        ]
        for key in keys
    ]
    equal = found[*keys[0], "equal dose"]
    note = (
        f"At the equal dose {equal['groups'].value:.0%} of the groups and "
        f"{equal['steps'].value:.0%} of the steps carry credit.\n"
    )
    dose = ["steps with credit", "groups with credit", "mean of abs A"]
    return f"{table(['credit', 'lists', *dose, *titles], lines)}\n{note}"


def explained(rows: pl.DataFrame, runs: pl.DataFrame | None) -> str:
    """Return how far estimators are apart, and how their order follows their dose, by stage.

    Estimators that read lists count once, with exact lists. `apart` is the standard deviation of
    their means over worlds. `rank correlation` is between the share of steps that carry credit as
    it is and the result, within each world, then averaged over worlds.

    Args:
        rows: Rows of `judge.judge_dose`.
        runs: Rows of `learning.learn_at_equal_dose` with `mean`; None without learning.
    """
    own = _estimators(rows)
    dose = _by_world(own.filter(stage="as is"), "steps")
    of: list[tuple[str, str, pl.DataFrame]] = [
        (title, stage, _by_world(own.filter(stage=stage), name))
        for name, title in _FRACTIONS.items()
        for stage in judge.STAGES
    ]
    if runs is not None:
        of += [
            ("learning", stage, _by_world(_estimators(runs).filter(stage=stage), "mean"))
            for stage in learning.STAGES
        ]
    lines = [[title, stage, *_spread(found, dose)] for title, stage, found in of]
    titles = ["of", "dose", "apart", "least", "most", "rank correlation with the share of steps"]
    return table(titles, lines)


def _estimators(rows: pl.DataFrame) -> pl.DataFrame:
    is_truth = pl.col("credit").str.starts_with("true")
    return rows.filter(~is_truth & pl.col("lists").is_in(["", "exact"]))


def _by_world(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return [num_worlds] rows and a column for each credit."""
    found = by_world(rows, [column], CREDIT)
    return found.pivot("credit", index="world", values=column).sort("world").drop("world")


def _spread(found: pl.DataFrame, dose: pl.DataFrame) -> list[str]:
    values, doses = found.to_numpy(), dose.select(found.columns).to_numpy()
    means = values.mean(0)
    correlation = mean([_spearman(x, y) for x, y in zip(doses, values, strict=True)])
    numbers = [number(float(value)) for value in (means.std(), means.min(), means.max())]
    return [*numbers, ranged(correlation)]


def _spearman(x: np.ndarray, y: np.ndarray) -> float | None:
    """Return the rank correlation; None if one of them is constant."""
    one, other = (ranks_within(each.round(9), np.zeros(len(each), np.int64)) for each in (x, y))
    if one.std() == 0 or other.std() == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _learning(runs: pl.DataFrame) -> str:
    found = averages(runs, ["mean", "final", "steps", "size"], [*CREDIT, "stage"])
    keys = [key[:2] for key in found if key[2] == "as is"]
    keys.sort(key=lambda key: -found[*key, "equal dose"]["mean"].value)
    columns = [(stage, name) for name in ("mean", "final") for stage in learning.STAGES]
    gaps = {
        stage: differences(runs.filter(stage=stage), "grpo", "mean")
        for stage in learning.STAGES
        if "grpo" in set(runs["credit"])
    }
    return table(
        [
            *("credit", "lists"),
            *(f"{name} success, {stage}" for stage, name in columns),
            *(f"mean, to grpo, {stage}" for stage in gaps),
            *("steps with credit, equal dose", "mean of abs A, equal dose"),
        ],
        [
            [
                *names(key),
                *(interval(found[*key, stage][name]) for stage, name in columns),
                *(ranged(gap[key]) for gap in gaps.values()),
                f"{found[*key, 'equal dose']['steps'].value:.0%}",
                number(found[*key, "equal dose"]["size"].value),
            ]
            for key in keys
        ],
    )


if __name__ == "__main__":
    main()
