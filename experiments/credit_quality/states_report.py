"""Tables of `states.py`: what each definition is worth in games, and whether evidence says so."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from experiments.markdown import number, table

NEAR = 0.05
"""How much less than the best definition a good one may be worth."""


def tables(rows: pl.DataFrame) -> str:
    """Return the tables as Markdown."""
    return f"{_of_worlds(rows)}\n{_of_definitions(rows)}"


def _of_worlds(rows: pl.DataFrame) -> str:
    """Return how evidence agrees with worth in each world, and what its choice is worth."""
    titles = ["world", "games", "agreement", "in 24 games", "beyond chance in", "then true", "good"]
    lines: list[list[str]] = []
    for (world,), of_world in rows.group_by("world", maintain_order=True):
        first = of_world.row(0, named=True)
        low, high = number(first["agreement_low"]), number(first["agreement_high"])
        told = _Choice.of(of_world, "told_share")
        tied = _Choice.of(of_world, "tied_share")
        lines.append(
            [
                str(world),
                f"{first['num_games']} ({first['num_mixed']} with different outcomes)",
                f"{number(first['agreement'])} ({low} to {high})",
                number(first["agreement_of_logs"]),
                f"{told.share:.0%}",
                f"{told.true:.0%}",
                *(f"{each.good:.0%} (cost {number(each.cost)})" for each in (told, tied)),
            ]
        )
    return table([*titles, "good, beyond chance or not"], lines)


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is chosen in the logs of a world."""

    share: float
    """Share of the logs in which anything is; the others are shares and means of these."""
    true: float
    good: float
    cost: float

    @classmethod
    def of(cls, rows: pl.DataFrame, column: str) -> "_Choice":
        share, cost = rows[column], rows["worth"].max() - rows["worth"]
        total = float(share.sum())
        parts = share.filter(rows["definition"] == "true"), share.filter(cost <= NEAR), share * cost
        return cls(total, *(float(part.sum()) / total if total else np.nan for part in parts))


def _of_definitions(rows: pl.DataFrame) -> str:
    titles = ["world", "state", "company", "evidence", "worth", "recommended"]
    return table(
        titles,
        [
            [
                row["world"],
                row["definition"],
                number(row["company"]),
                f"{number(row['evidence'])} ± {number(2 * row['error'])}",
                number(row["worth"]),
                f"{row['tied_share']:.0%}",
            ]
            for row in rows.iter_rows(named=True)
        ],
    )
