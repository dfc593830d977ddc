"""Does memory help a policy learn? Tabular curves of `reach` with windows of earlier iterations.

    python -m experiments.credit_truth.memory --seeds 6

The policies of the worlds for design learn as in `learning.py`, so what is remembered is of
policies that the training itself left behind. `window` is `--graph-window`; 0 remembers nothing.
"""

import argparse
from collections.abc import Iterator
from itertools import product
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa

from experiments.credit_truth.exact import policy_of
from experiments.credit_truth.judge import group_gradients
from experiments.credit_truth.learning import ITERATIONS, successes
from experiments.credit_truth.policies import POLICIES, logits_of
from experiments.credit_truth.rollouts import sample, step_table
from experiments.credit_truth.worlds.table import DESIGN_WORLDS, world_named
from experiments.episodes import GROUP_SIZE, Floats
from graphcredit import compute

WINDOWS = (0, 1, 2, 4)
RATES = (3.0, 10.0, 30.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="of each kind of policy")
    parser.add_argument("--worlds", nargs="+", default=list(DESIGN_WORLDS))
    options = parser.parse_args()
    keys = product(options.worlds, RATES, WINDOWS)
    rows = [
        {"world": name, "rate": rate, "window": window, "run": run, "success": success}
        for name, rate, window in keys
        for run, success in enumerate(mean_success(name, rate, window, options.seeds))
    ]
    for line in table_of(pl.DataFrame(rows)):
        print(line, flush=True)


def mean_success(name: str, rate: float, window: int, num_seeds: int) -> list[float]:
    """Return the exact success of each run, mean over its curve."""
    world = world_named(name)
    logits = np.stack([logits_of(world, *run) for run in product(POLICIES, range(num_seeds))])
    rng = np.random.default_rng([crc32(name.encode()), 5])
    curve: list[Floats] = [successes(world, logits)]
    remembered: list[pa.Table] = []
    for number in range(ITERATIONS):
        policies = np.stack([policy_of(world, each) for each in logits])
        rollouts = sample(world, policies, GROUP_SIZE, rng)
        steps = step_table(world, rollouts, lists="none")
        iteration = pa.array(np.full(steps.num_rows, number, np.int32))
        remembered = [*remembered, steps.append_column("iteration", iteration)][-window - 1 :]
        credit = compute(pa.concat_tables(remembered), estimators="reach", graph_window=window)
        advantage = credit["reach_advantage"].to_numpy()[-steps.num_rows :].astype(np.float64)
        gradient = group_gradients(world, policies, rollouts, advantage)
        logits = logits + rate * gradient / GROUP_SIZE
        curve.append(successes(world, logits))
    return np.mean(curve, axis=0).tolist()


def table_of(rows: pl.DataFrame) -> Iterator[str]:
    """Yield a Markdown table: the mean over worlds, and what each window adds to none."""
    yield f"| rate | {' | '.join(f'window {window}' for window in WINDOWS)} |"
    yield f"|{' --- |' * (len(WINDOWS) + 1)}"
    for rate in RATES:
        at_rate = rows.filter(rate=rate).pivot("window", index=["world", "run"], values="success")
        cells = [f"{at_rate['0'].mean():.3f}"]
        for window in WINDOWS[1:]:
            gain = at_rate.select("world", gain=pl.col(str(window)) - pl.col("0"))
            of_world = gain.group_by("world").agg(pl.col("gain").mean())["gain"].to_numpy()
            error = of_world.std(ddof=1) / np.sqrt(len(of_world))
            cells.append(f"{of_world.mean():+.3f} ± {error:.3f}")
        yield f"| {rate:g} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
