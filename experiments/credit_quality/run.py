"""Run or resume the experiment on credit quality: play, assign credit, judge, write the tables.

    python -m experiments.credit_quality.run --out results
    python -m experiments.credit_quality.run --out quick --quick

The log is in OUT/<games>/log, the rows of each condition in OUT/<games>/rows, and the results in
OUT/<games>/credit-quality.{parquet,md,png}. Finished parts are skipped. After a change of an
estimator's code, delete its rows; new estimators and changed defaults are detected.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from experiments.credit_quality.averages import averages
from experiments.credit_quality.conditions import Condition, conditions
from experiments.credit_quality.figure import draw
from experiments.credit_quality.games import GAMES, few
from experiments.credit_quality.judge import judge, made_by
from experiments.credit_quality.logs import play
from experiments.credit_quality.report import tables
from graphcredit.store import Store, create_store
from graphcredit.store.files.tables import write_table

_MADE_BY = b"credit_quality.made_by"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--games", choices=list(GAMES), default="development")
    parser.add_argument("--quick", action="store_true", help="two games of each kind, minutes")
    options = parser.parse_args()
    folder = options.out / options.games
    log = create_store(folder / "log")
    chosen = {
        environment: few(games, 2) if options.quick else games
        for environment, games in GAMES[options.games].items()
    }
    for environment, games in chosen.items():
        play(log, environment, games)
    rows = pl.concat(
        [
            rows_of(log, condition, chosen[condition.environment], folder / "rows")
            for condition in conditions()
        ]
    )
    write_table(rows.to_arrow(), folder / "credit-quality.parquet")
    found = averages(rows)
    (folder / "credit-quality.md").write_text(tables(rows, found), encoding="utf-8")
    draw(found, folder / "credit-quality.png")


def rows_of(log: Store, condition: Condition, games: Sequence[str], folder: Path) -> pl.DataFrame:
    """Return the rows of a condition, from its file if that is up to date.

    Args:
        log: Store of the played games.
        condition: Selects the steps, and how they get their credit.
        games: Full names of its games.
        folder: Where the files of all conditions are.
    """
    path, mark = folder / f"{condition.name}.parquet", made_by(condition, games)
    if not path.exists() or (pq.read_schema(path).metadata or {}).get(_MADE_BY) != mark.encode():
        started = time.process_time()
        table = judge(log, condition).to_arrow()
        write_table(table.replace_schema_metadata({_MADE_BY: mark}), path)
        print(f"{condition.name}: {time.process_time() - started:.0f} s of CPU", flush=True)
    return pl.read_parquet(path)


if __name__ == "__main__":
    main()
