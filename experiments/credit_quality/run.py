"""Run or resume the experiment on credit quality: play, assign credit, judge, print the tables.

    python -m experiments.credit_quality.run --out results       # ALFWorld needs $ALFWORLD_DATA
    python -m experiments.credit_quality.run --out quick --world sokoban --tasks 4

Without `$ALFWORLD_DATA`, ALFWorld is left out. The log is in OUT/log, the rows of each condition in
OUT/rows, and the result in OUT/credit-quality.parquet. Finished parts are skipped; after a change
of an estimator's code, delete OUT/rows.
"""

from experiments import options
from experiments.credit_quality.judge import LISTS, Condition, judge, made_by
from experiments.credit_quality.worlds import WORLDS, play, playable
from experiments.jobs import made
from experiments.report import publish
from graphcredit.store import create_store


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--world", action="append", choices=list(WORLDS), help="by default all")
    parser.add_argument("--tasks", type=int, help="fewer games of each world")
    given = parser.parse_args()
    log = create_store(given.out / "log")
    conditions: list[Condition] = []
    for name in given.world or playable(WORLDS):
        games = play(log, name, num_tasks=given.tasks, num_workers=given.workers)
        conditions += [
            Condition(log=log.root, world=name, lists=lists, games=tuple(games)) for lists in LISTS
        ]
    rows = made(given.out / "rows", conditions, judge, made_by, given.workers)
    publish(rows, given.out, "credit-quality")


if __name__ == "__main__":
    main()
