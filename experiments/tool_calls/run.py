"""GRPO, `reach` and scores of turns among tools, on tasks never played: written down beforehand.

    python -m experiments.tool_calls.run --out runs --arms grpo          # resumes
    python -m experiments.tool_calls.run --out runs --save docs/research/tables/learning-tools.csv

**Question.** A small model learns to serve customers (`world.py`: two wishes, twelve calls, dead
ends). Which credit carries over best to tasks that nothing was learnt from?

**Arms.** `grpo` and `reach`, both paid with `finish`; `scores`, paid each turn by what it changes
in the score, with `turn_rloo`, which credits a turn with the rewards from it on. All else is the
same: warm policy, tasks, number of rollouts, rate 6e-4 and KL 0.02 (those of
experiments.textworld; nothing is tuned here).

**Hypotheses.** `reach` is ahead of `grpo`, and `scores` is ahead of `grpo`: GRPO gives all turns of
a trajectory the same, and an order that was wrongly cancelled is blamed on the greeting too.
Nothing is expected about `reach` against `scores`.

**Endpoint.** Success on 40 tasks whose wishes and items are in neither warm-up nor training, six
plays of each, after one pass of 8 iterations of 8 tasks, 8 rollouts of each. Secondary: the mean
success during the pass.

**Analysis.** Five pairs: seeds of the rollouts and of the plays of unseen tasks, from one warm
policy. The mean of the paired differences with the 95 % interval of Student's t over the pairs. A
lead is claimed for `reach - grpo` and `scores - grpo` where the interval lies above 0; all else is
description. Pairs that are not whole are left out, and their number is said. Pair 99 was for timing
and for a warm-up with which 5 to 40 % of the plays succeed; it is in no table.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import polars as pl

from examples.warm_up import WarmUp, warm_up
from experiments.markdown import frame, ranged
from experiments.means import students_t
from experiments.tool_calls.world import register, specs, world_of
from graphcredit.loop.config import LoopConfig, loop_config
from graphcredit.loop.run import run_loop

ARMS = {
    "grpo": ("named-tools", "grpo"),
    "reach": ("named-tools", "reach"),
    "scores": ("paid-tools", "turn_rloo"),
}
"""Environment and estimator of each arm."""

PAIRS = (1, 2, 3, 4, 5)
COMPARED = (("reach", "grpo"), ("scores", "grpo"), ("reach", "scores"))
ITERATIONS = 8
MAX_STEPS = 16
WARM_UPDATES = 200

UNSEEN = specs(10_000, 40)
_SEEN = specs(0, 8 * ITERATIONS + 32, but=frozenset(map(world_of, UNSEEN)))
LEARNT, WARM = _SEEN[: 8 * ITERATIONS], _SEEN[8 * ITERATIONS :]

TEMPLATE = """answer = "plain"
user = \"\"\"
{state}
>
\"\"\"
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--read", type=Path, help="a saved CSV: print its tables, run nothing")
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--pairs", default=",".join(map(str, PAIRS)))
    parser.add_argument("--save", type=Path, help="CSV of all iterations")
    options = parser.parse_args()
    if options.read:
        print(report(pl.read_csv(options.read)))
        return
    register()
    rows: list[dict[str, Any]] = []
    for pair in map(int, options.pairs.split(",")):
        for arm in options.arms.split(","):
            rows += learn(options.out, arm, pair)
            print(arm, pair, rows[-1]["unseen"], flush=True)
    runs = pl.DataFrame(rows, infer_schema_length=None)
    if options.save:
        runs.write_csv(options.save, float_precision=4)
    if runs["arm"].n_unique() == len(ARMS):
        print(report(runs))


def report(runs: pl.DataFrame) -> str:
    """Return the tables of the page, of the pairs of which every arm is there."""
    num_arms = pl.col("arm").n_unique().over("pair")
    ends = ends_of(runs.filter(num_arms == len(ARMS)))
    means = (
        ends.group_by("arm", maintain_order=True)
        .agg(pl.len().alias("pairs"), pl.exclude("pair").mean())
        .with_columns(pl.col("steps").round().cast(pl.Int64))
    )
    return f"{frame(means)}\n{frame(differences(ends))}"


def learn(out: Path, arm: str, pair: int) -> list[dict[str, Any]]:
    """Run or resume an arm of a pair; return a row for each iteration, and one after the last."""
    lines = list(run_loop(_config(out, arm, pair, _warm(out))))
    # A finished run is never continued, so only its log is needed.
    shutil.rmtree(out / f"{arm}-{pair}" / "policies")
    names = ("iteration", "env_steps", "success_rate", "mean_return", "cpu_seconds")
    return [
        {"arm": arm, "pair": pair}
        | {name: line.get(name) for name in names}
        | {"unseen": line.get("sampled_held_out_success_rate")}
        for line in lines
    ]


def ends_of(runs: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each run: success on unseen tasks at first and last, and during the pass."""
    unseen = pl.col("unseen").drop_nulls()
    return runs.group_by("arm", "pair", maintain_order=True).agg(
        unseen.first().alias("unseen, at first"),
        unseen.last().alias("unseen, at the end"),
        pl.col("success_rate").mean().alias("during the pass"),
        pl.col("env_steps").last().alias("steps"),
    )


def differences(ends: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each comparison, over whole pairs."""
    of = {str(arm): own.sort("pair") for (arm,), own in ends.group_by("arm")}
    rows: list[dict[str, Any]] = []
    for one, other in COMPARED:
        gaps = {
            name: of[one][name].to_numpy() - of[other][name].to_numpy()
            for name in ("unseen, at the end", "during the pass")
        }
        rows.append(
            {"difference": f"{one} - {other}"}
            | {name: ranged(students_t(gap), 3) for name, gap in gaps.items()}
            | {"ahead in": int((gaps["unseen, at the end"] > 0).sum())}
        )
    return pl.DataFrame(rows)


def _warm(out: Path) -> Path:
    """Make the warm policy, unless it exists; return its model."""
    model = out / "warm" / "policy" / "model"
    if model.exists():
        return model
    plan = WarmUp(
        directory=out / "warm",
        env="tutored-tools",
        games=",".join(WARM),
        tasks=len(WARM),
        episodes=25,
        max_steps=MAX_STEPS,
        vocabulary=512,
        updates=WARM_UPDATES,
        template=str(_template(out)),
        seed=99,
        workers=0,
    )
    return warm_up(plan)


def _template(out: Path) -> Path:
    path = out / "named.toml"
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(TEMPLATE, encoding="utf-8")
    return path


def _config(out: Path, arm: str, pair: int, model: Path) -> LoopConfig:
    environment, estimator = ARMS[arm]
    return loop_config(
        {
            "out": out / f"{arm}-{pair}",
            "model": model,
            "iterations": 1,
            "update_every": len(LEARNT) // ITERATIONS,
            "collect": {
                "env": environment,
                "games": ",".join(LEARNT),
                "tasks": len(LEARNT),
                "seed": pair,
                "max_steps": MAX_STEPS,
                "template": str(_template(out)),
                "max_new_tokens": 14,
                "dtype": "float32",
            },
            "credit": {"estimators": [estimator]},
            "train": {
                "learning_rate": 6e-4,
                "kl_coefficient": 0.02,
                "beta2": 0.98,
                "batch_size": 160,
                "max_tokens": 4096,
                "correction": "bypass",
                "seed": pair,
                "device": "cpu",
                "dtype": "float32",
            },
            "evaluate": {
                "every": ITERATIONS,
                "games": ",".join(UNSEEN),
                "tasks": len(UNSEEN),
                "on_training_games": False,
                "greedy": False,
                "samples": 6,
                "seed": 1000 * pair,
            },
        }
    )


if __name__ == "__main__":
    main()
