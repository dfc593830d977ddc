"""The table of `run.py`: the fraction of the true gain by judge, way to log and credit."""

import polars as pl

from experiments.credit_truth.averages import averages
from experiments.credit_truth.judge import MANY
from experiments.markdown import interval, table


def tables(rows: pl.DataFrame) -> str:
    """Return the table as Markdown."""
    keys = ["judge", "logged", "credit", "num_groups"]
    found = averages(rows, ["fraction"], keys)
    kinds = rows.select(keys[:3]).unique(maintain_order=True).rows()
    return table(
        ["who judges", "logged as", "credit", "fraction, 1 group", f"fraction, {MANY} groups"],
        [
            [
                judge,
                logged,
                f"`{credit}`",
                *(
                    interval(found[judge, logged, credit, number]["fraction"])
                    for number in (1, MANY)
                ),
            ]
            for judge, logged, credit in kinds
        ],
    )
