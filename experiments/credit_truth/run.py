"""Run or resume the experiment on what credit is worth to learning.

    python -m experiments.credit_truth.run --out results
    python -m experiments.credit_truth.run --out results --learning      # and learning curves
    python -m experiments.credit_truth.run --out results --noise         # and with noisy texts
    python -m experiments.credit_truth.run --out quick --quick           # one seed, seconds
    python -m experiments.credit_truth.run --out design --design         # the worlds for design
    python -m experiments.credit_truth.run --out graded --graded         # those with scores
    python -m experiments.credit_truth.run --out mine --estimator grpo --estimator graphgpo

The rows of each unit (a world, a kind of policy, a seed) are in OUT/units, those of learning in
OUT/curves, and the results in OUT/credit-truth.{parquet,md} and OUT/learning.parquet. Those
under noise, of one seed, are in OUT/noise-units and OUT/noise.{parquet,md}. Finished units are
skipped. New estimators and changed defaults are detected; after a change of code, delete the
folder.
"""

import argparse
import os
from pathlib import Path

import polars as pl

from experiments.credit_truth import learning
from experiments.credit_truth.judge import MANY, judge, made_by, units
from experiments.credit_truth.noise.judge import judge_noisy, noisy, noisy_made_by
from experiments.credit_truth.noise.report import noise_tables
from experiments.credit_truth.report import tables
from experiments.credit_truth.worlds.table import DESIGN_WORLDS, GRADED_WORLDS, WORLDS
from experiments.jobs import made
from graphcredit.store.files.tables import write_table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("credit-truth"))
    parser.add_argument("--quick", action="store_true", help="one seed, 16 groups")
    parser.add_argument("--seeds", type=int, default=5, help="policies of each kind in a world")
    parser.add_argument("--estimator", action="append", default=[], help="by default all")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--design", action="store_true", help="the worlds for design, not those that judge"
    )
    which.add_argument("--graded", action="store_true", help="the worlds for design with scores")
    parser.add_argument("--learning", action="store_true", help="learning curves too")
    parser.add_argument("--noise", action="store_true", help="with disturbed texts too")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    out, workers, estimators = options.out, options.workers, tuple(options.estimator)
    worlds = GRADED_WORLDS if options.graded else DESIGN_WORLDS if options.design else WORLDS
    chosen = units(
        tuple(worlds),
        num_seeds=1 if options.quick else options.seeds,
        num_groups=MANY if options.quick else 2 * MANY,
        estimators=estimators,
    )
    rows = _kept(made(out / "units", chosen, judge, made_by, workers), out / "credit-truth.parquet")
    curves = None
    if options.learning:
        runs = list(learning.curves_of(tuple(worlds), estimators))
        learnt = made(out / "curves", runs, learning.learn, learning.made_by, workers)
        curves = _kept(learnt, out / "learning.parquet")
    _show(tables(rows, curves), out / "credit-truth.md")
    if options.noise:
        disturbed = noisy([unit for unit in chosen if not unit.seed])
        under_noise = made(out / "noise-units", disturbed, judge_noisy, noisy_made_by, workers)
        _show(noise_tables(_kept(under_noise, out / "noise.parquet")), out / "noise.md")


def _kept(rows: pl.DataFrame, path: Path) -> pl.DataFrame:
    write_table(rows.to_arrow(), path)
    return rows


def _show(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
