"""Print the tables of kept results as Markdown.

    python -m experiments.report                                # those of docs/research
    python -m experiments.report OUT --only noise               # those of a run of one's own

A run of an experiment writes OUT/NAME.parquet and prints the tables too.
"""

import argparse
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import polars as pl

from graphcredit.store.files.tables import write_table

RESULTS = Path(__file__).parent / "results"
"""What the pages of docs/research show."""

_TABLES: Mapping[str, str] = {
    "credit-quality": "credit_quality.report",
    "games": "credit_quality.states_report",
    "credit-truth": "credit_truth.report",
    "graded": "credit_truth.report",
    "believe": "credit_truth.believe_report",
    "learning": "credit_truth.learning_report",
    "noise": "credit_truth.noise.report",
    "turns": "credit_truth.turns.report",
    "states": "credit_truth.states.report",
    "tools": "credit_truth.tools.report",
    "unseen": "textworld.report",
}
"""Result to the module whose `tables` shows it; imported when it is shown, as some need torch."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--only", choices=list(_TABLES))
    options = parser.parse_args()
    for name in [options.only] if options.only else _TABLES:
        path = options.out / f"{name}.parquet"
        if path.exists():
            print(f"# {name}\n\n{tables(name, pl.read_parquet(path))}")


def tables(name: str, rows: pl.DataFrame) -> str:
    """Return the tables of a result."""
    return import_module(f"experiments.{_TABLES[name]}").tables(rows)


def publish(rows: pl.DataFrame, out: Path, name: str) -> None:
    """Write a result and print its tables."""
    write_table(rows.to_arrow(), out / f"{name}.parquet")
    print(tables(name, rows))


if __name__ == "__main__":
    main()
