"""Run or resume the experiment: two warm policies, and four pairs of runs.

    python -m experiments.textworld.run --out runs          # hours on two cores
    python -m experiments.textworld.run --quick --out quick # does success rise?

Every run is a loop (`graphcredit loop`) on the CPU, in OUT/loops. What is finished is skipped.
Arithmetic differs between kinds of machines, so all compared runs are made on one.
"""

import json
import os
import sys
from pathlib import Path

import polars as pl

from examples.warm_up import warm_up
from experiments import options
from experiments.jobs import made
from experiments.report import publish
from experiments.textworld.cells import ARMS, QUICK, Cell, pairs
from graphcredit.loop.run import run_loop

RISE = 0.25
"""Least rise of success in the quick run."""


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="one short run of a minute or two")
    given = parser.parse_args()
    out, workers = given.out, given.workers
    # Before torch looks for GPUs, which it does once, and counts cores; children inherit it.
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    if given.quick:
        before, after = quick(out)
        print(f"success: {before:.2f} to {after:.2f}")
        sys.exit(0 if after >= before + RISE else 1)
    cells = pairs(out)
    for first in cells[:: len(ARMS)]:
        imitate(first)
    publish(made(out / "rows", cells, learn, made_by, workers), out, "unseen")


def imitate(cell: Cell) -> None:
    """Make the warm policy of a run, unless it exists."""
    warm_up(cell.warm_up())


def made_by(cell: Cell) -> str:
    """Return all that determines the rows of a run but the code."""
    config = cell.config().as_json()
    return json.dumps(config | {"out": "", "model": cell.warm.name}, sort_keys=True, default=str)


def learn(cell: Cell) -> pl.DataFrame:
    """Return a row for each iteration of a run.

    `env_steps` and `seconds`, those of one busy core, count up to the start of the iteration: they
    belong to the policy of its success. `unseen` is success on held-out games, where they are
    played: before the first iteration, and in a row of its own after the last one.
    """
    lines = list(run_loop(cell.config()))
    steps = [0, *(line["env_steps"] for line in lines)]
    seconds = [0.0]
    for line in lines:
        seconds.append(seconds[-1] + line.get("cpu_seconds", 0.0))
    return pl.DataFrame(
        [
            {
                "arm": cell.arm,
                "seed": cell.seed,
                "iteration": line["iteration"],
                "env_steps": steps[number],
                "seconds": seconds[number],
                "success": line.get("success_rate"),
                "unseen": line.get("sampled_held_out_success_rate"),
            }
            for number, line in enumerate(lines)
        ],
        schema_overrides={"success": pl.Float64, "unseen": pl.Float64},
    )


def quick(out: Path) -> tuple[float, float]:
    """Return the success of a policy in the first and in the last two iterations of a short run."""
    cell = Cell(out=out, arm="graphgpo", seed=0, games=QUICK)
    imitate(cell)
    success = learn(cell)["success"].to_list()
    return success[0], sum(success[-2:]) / 2


if __name__ == "__main__":
    main()
