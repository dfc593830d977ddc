"""Run or resume the experiment: does a policy learn faster from a credit, and does it carry over?

    python -m experiments.sokoban.run --out results                     # the arms of settings.ARMS
    python -m experiments.sokoban.run --out results --size 6x6b2 --arm grpo --arm graphgpo
    python -m experiments.sokoban.run --out results --arm graphgpo:distance_discount=0.5
    python -m experiments.sokoban.run --quick --out quick               # does success rise?

A run takes about 15 seconds of one core, and its rows are in OUT/runs. Finished runs are skipped.
The result has all runs in OUT, also those of arms that were asked for earlier.
After a change of code, delete the folder.
"""

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import polars as pl

from experiments import options
from experiments.jobs import made
from experiments.report import publish
from experiments.sokoban.learn import learn
from experiments.sokoban.report import best_rates
from experiments.sokoban.settings import (
    ARMS,
    RATES,
    REPORTED_WARMS,
    SIZES,
    TUNING_WARMS,
    Cell,
    made_by,
    read_arm,
)
from graphcredit.store.errors import OptionError

QUICK = Cell(size="6x6b1", arm="graphgpo", rate=3e-3, warm=0)
QUICK_ITERATIONS = 60
RISE = 0.1
"""Least rise of success on unseen boards in the quick run."""


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--size", action="append", default=[], choices=SIZES)
    parser.add_argument("--arm", action="append", default=[], help="by default settings.ARMS")
    parser.add_argument("--quick", action="store_true", help="one short run on easier boards")
    given = parser.parse_args()
    if given.quick:
        sys.exit(0 if quick() >= RISE else 1)
    sizes, arms = given.size or SIZES, given.arm or ARMS
    try:
        for arm in arms:
            read_arm(arm)
    except OptionError as error:
        parser.error(str(error))
    for size in sizes:
        swept = _made(given.out, _swept(size, arms), given.workers)
        _made(given.out, _repeats(size, swept), given.workers)
    runs = sorted((given.out / "runs").iterdir())
    publish(pl.concat(map(pl.read_parquet, runs)), given.out, "sokoban")


def quick() -> float:
    """Return how much the success on unseen boards rises in a short run."""
    success = learn(QUICK, QUICK_ITERATIONS)["held_out"]
    print(f"success on unseen boards: {', '.join(f'{value:.2f}' for value in success)}")
    return float(success[-1] - success[0])


def _swept(size: str, arms: Sequence[str]) -> list[Cell]:
    return [
        Cell(size=size, arm=arm, rate=rate, warm=warm)
        for warm, arm, rate in product(TUNING_WARMS, arms, RATES)
    ]


def _repeats(size: str, swept: pl.DataFrame) -> list[Cell]:
    best = {arm: rate for (_, arm), rate in best_rates(swept).items()}
    return [
        Cell(size=size, arm=arm, rate=rate, warm=warm)
        for warm, (arm, rate) in product(REPORTED_WARMS, best.items())
    ]


def _made(out: Path, cells: list[Cell], num_workers: int) -> pl.DataFrame:
    return made(out / "runs", cells, learn, made_by, num_workers)


if __name__ == "__main__":
    main()
