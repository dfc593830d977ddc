"""Run or resume the experiment on credit quality: play, assign credit, judge, print the tables.

    python -m experiments.credit_quality.run --out results       # ALFWorld needs $ALFWORLD_DATA
    python -m experiments.credit_quality.run --out quick --world sokoban --tasks 4
    python -m experiments.credit_quality.report results          # prints the tables again

Without `$ALFWORLD_DATA`, ALFWorld is left out. The log is in OUT/log, the rows of each condition in
OUT/rows, and the result in OUT/credit-quality.parquet. Finished parts are skipped; after a change
of an estimator's code, delete OUT/rows.
"""

import argparse
import os
from pathlib import Path

from experiments.credit_quality.judge import LISTS, Condition, judge, made_by
from experiments.credit_quality.report import tables
from experiments.credit_quality.worlds import WORLDS, play
from experiments.jobs import made
from graphcredit.store import create_store
from graphcredit.store.files.tables import write_table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--world", action="append", choices=list(WORLDS), help="by default all")
    parser.add_argument("--tasks", type=int, help="fewer games of each world")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = options.world or [
        name for name in WORLDS if name != "alfworld" or os.environ.get("ALFWORLD_DATA")
    ]
    log = create_store(options.out / "log")
    conditions: list[Condition] = []
    for name in chosen:
        games = play(log, name, num_tasks=options.tasks, num_workers=options.workers)
        conditions += [
            Condition(log=log.root, world=name, lists=lists, games=tuple(games)) for lists in LISTS
        ]
    rows = made(options.out / "rows", conditions, judge, made_by, options.workers)
    write_table(rows.to_arrow(), options.out / "credit-quality.parquet")
    print(tables(rows))


if __name__ == "__main__":
    main()
