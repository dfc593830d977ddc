"""Run or resume the experiment on what credit is worth to learning.

    python -m experiments.credit_truth.run --out results
    python -m experiments.credit_truth.run --out results --learning      # and learning curves
    python -m experiments.credit_truth.run --out results --dose          # all at an equal dose too
    python -m experiments.credit_truth.run --out results --noise         # and with noisy texts
    python -m experiments.credit_truth.run --out quick --quick           # one seed, seconds
    python -m experiments.credit_truth.run --out design --design         # the worlds for design
    python -m experiments.credit_truth.run --out mine --estimator grpo --estimator graphgpo

The rows of each unit (a world, a kind of policy, a seed) are in OUT/units, those of learning in
OUT/curves, and the results in OUT/credit-truth.{parquet,md,png} and OUT/learning.parquet. Those of
the comparison at an equal dose are in OUT/dose-units, OUT/dose-curves, OUT/dose.{parquet,md} and
OUT/dose-learning.parquet; those under noise, of one seed, in OUT/noise-units and
OUT/noise.{parquet,md}. Finished units are skipped. New estimators and changed defaults are
detected; after a change of code, delete the folder.
"""

import argparse
import os
from pathlib import Path

import polars as pl

from experiments.credit_truth import learning
from experiments.credit_truth.dose import learning as dose_learning
from experiments.credit_truth.dose.judge import judge_dose
from experiments.credit_truth.dose.report import dose_tables
from experiments.credit_truth.figure import draw
from experiments.credit_truth.judge import MANY, Unit, judge, made_by, units
from experiments.credit_truth.learning import Curves, curves_of, learn
from experiments.credit_truth.noise.judge import NoisyUnit, judge_noisy, noisy, noisy_made_by
from experiments.credit_truth.noise.report import noise_tables
from experiments.credit_truth.parts import in_processes, rows_at
from experiments.credit_truth.report import tables
from experiments.credit_truth.worlds.design.table import DESIGN_WORLDS
from experiments.credit_truth.worlds.table import WORLDS
from graphcredit.store.files.tables import write_table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("credit-truth"))
    parser.add_argument("--quick", action="store_true", help="one seed, 16 groups")
    parser.add_argument("--seeds", type=int, default=5, help="policies of each kind in a world")
    parser.add_argument("--estimator", action="append", default=[], help="by default all")
    parser.add_argument(
        "--design", action="store_true", help="the worlds for design, not those that judge"
    )
    parser.add_argument("--learning", action="store_true", help="learning curves too")
    parser.add_argument("--dose", action="store_true", help="all credits at an equal dose too")
    parser.add_argument("--noise", action="store_true", help="with disturbed texts too")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    estimators = tuple(options.estimator)
    worlds = tuple(DESIGN_WORLDS if options.design else WORLDS)
    chosen = units(
        worlds,
        num_seeds=1 if options.quick else options.seeds,
        num_groups=MANY if options.quick else 2 * MANY,
        estimators=estimators,
    )
    rows = in_processes(_rows, options.out / "units", chosen, options.workers)
    write_table(rows.to_arrow(), options.out / "credit-truth.parquet")
    curves = None
    if options.learning:
        runs = list(curves_of(worlds, estimators))
        curves = in_processes(_curves, options.out / "curves", runs, options.workers)
        write_table(curves.to_arrow(), options.out / "learning.parquet")
    text = tables(rows, curves)
    (options.out / "credit-truth.md").write_text(text, encoding="utf-8")
    print(text)
    draw(rows, options.out / "credit-truth.png")
    if options.dose:
        runs = list(curves_of(worlds, estimators))
        at_equal_dose(options.out, chosen, runs, estimators, options.workers)
    if options.noise:
        under_noise(options.out, [unit for unit in chosen if not unit.seed], options.workers)


def at_equal_dose(
    out: Path,
    chosen: list[Unit],
    runs: list[Curves],
    estimators: tuple[str, ...],
    num_workers: int,
) -> None:
    """Write and print the comparison at an equal dose.

    Args:
        out: Folder of the results.
        chosen: Units whose rollouts are judged.
        runs: Learning curves that are compared.
        estimators: Judged estimators; none for all that need no entities.
        num_workers: Processes at a time.
    """
    rows = in_processes(_dosed, out / "dose-units", chosen, num_workers)
    write_table(rows.to_arrow(), out / "dose.parquet")
    dosed = [(run, estimators) for run in runs]
    curves = in_processes(_dosed_curves, out / "dose-curves", dosed, num_workers)
    write_table(curves.to_arrow(), out / "dose-learning.parquet")
    text = dose_tables(rows, curves)
    (out / "dose.md").write_text(text, encoding="utf-8")
    print(text)


def under_noise(out: Path, chosen: list[Unit], num_workers: int) -> None:
    """Write and print what credit is worth where the views of some units are disturbed."""
    rows = in_processes(_noisy, out / "noise-units", noisy(chosen), num_workers)
    write_table(rows.to_arrow(), out / "noise.parquet")
    text = noise_tables(rows)
    (out / "noise.md").write_text(text, encoding="utf-8")
    print(text)


def _rows(folder: Path, unit: Unit) -> pl.DataFrame:
    return rows_at(folder / f"{unit.name}.parquet", made_by(unit), lambda: judge(unit))


def _curves(folder: Path, curves: Curves) -> pl.DataFrame:
    path = folder / f"{curves.name}.parquet"
    return rows_at(path, learning.made_by(curves), lambda: learn(curves))


def _noisy(folder: Path, of: NoisyUnit) -> pl.DataFrame:
    return rows_at(folder / f"{of.name}.parquet", noisy_made_by(of), lambda: judge_noisy(of))


def _dosed(folder: Path, unit: Unit) -> pl.DataFrame:
    return rows_at(folder / f"{unit.name}.parquet", made_by(unit), lambda: judge_dose(unit))


def _dosed_curves(folder: Path, run: tuple[Curves, tuple[str, ...]]) -> pl.DataFrame:
    curves, estimators = run
    path = folder / f"{curves.name}.parquet"
    return rows_at(
        path,
        dose_learning.made_by(curves, estimators),
        lambda: dose_learning.learn_at_equal_dose(curves, estimators),
    )


if __name__ == "__main__":
    main()
