"""Tables of `run.py`: how credit follows progress."""

from collections.abc import Mapping

import polars as pl

from experiments.credit_quality.judge import LISTS
from experiments.credit_quality.worlds import WORLDS
from experiments.markdown import half_interval, sections, table
from experiments.means import Mean, mean

_COLUMNS: tuple[tuple[str, str], ...] = tuple(
    (part, lists) for lists in LISTS for part in ("total", "step")
)
_PARTS: Mapping[str, str] = {"total": "advantage", "step": "step part"}


def tables(rows: pl.DataFrame) -> str:
    """Return a table for each world, with the best estimator first.

    Args:
        rows: Rows of `judge.judge`.
    """
    worlds = set(rows["environment"])
    return sections(
        {name: _table(rows.filter(environment=name)) for name in WORLDS if name in worlds}
    )


def averages(rows: pl.DataFrame, statistic: str) -> dict[tuple[str, str, str], Mean]:
    """Return the mean over games by estimator, part and lists, of the rows of one world."""
    keys = ["estimator", "part", "lists"]
    groups = rows.sort("game").group_by(keys, maintain_order=True)
    return {
        (str(estimator), str(part), str(lists)): mean(own[statistic].to_list())
        for (estimator, part, lists), own in groups
    }


def _table(rows: pl.DataFrame) -> str:
    of = averages(rows, "over_all")

    def best(name: str) -> float:
        return max(of[name, part, "exact"].value for part in _PARTS if (name, part, "exact") in of)

    order = sorted(dict.fromkeys(name for name, _, _ in of), key=lambda name: -best(name))
    return table(
        ["estimator", *(f"{_PARTS[part]}, {lists}" for part, lists in _COLUMNS)],
        [
            [
                f"`{name}`",
                *(
                    half_interval(of[name, *column]) if (name, *column) in of else "–"
                    for column in _COLUMNS
                ),
            ]
            for name in order
        ],
    )
