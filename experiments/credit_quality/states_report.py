"""Tables of `states.py`: what each definition is worth in games, and whether evidence says so."""

import polars as pl

from experiments.markdown import number, table

NEAR = 0.05
"""How much less than the best definition a good one may be worth."""


def tables(rows: pl.DataFrame) -> str:
    """Return the tables as Markdown."""
    return f"{_of_worlds(rows)}\n{_of_definitions(rows)}"


def _of_worlds(rows: pl.DataFrame) -> str:
    """Return how evidence agrees with worth in each world, and what its choice is worth."""
    titles = [
        "world",
        "games",
        "agreement",
        "of 24 games",
        "true state recommended",
        "good",
        "cost",
    ]
    lines: list[list[str]] = []
    for (world,), of_world in rows.group_by("world", maintain_order=True):
        first = of_world.row(0, named=True)
        low, high = number(first["agreement_low"]), number(first["agreement_high"])
        cost = of_world["worth"].max() - of_world["worth"]
        share = of_world["chosen_share"]
        lines.append(
            [
                str(world),
                f"{first['num_games']} ({first['num_mixed']} with different outcomes)",
                f"{number(first['agreement'])} ({low} to {high})",
                number(first["agreement_of_logs"]),
                f"{share.filter(of_world['definition'] == 'true').sum():.0%}",
                f"{share.filter(cost <= NEAR).sum():.0%}",
                number(float((share * cost).sum()), 3),
            ]
        )
    return table(titles, lines)


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
                f"{row['chosen_share']:.0%}",
            ]
            for row in rows.iter_rows(named=True)
        ],
    )
