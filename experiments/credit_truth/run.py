"""Run or resume the experiment on what credit is worth to learning.

    python -m experiments.credit_truth.run --out results
    python -m experiments.credit_truth.run --out results --learning      # and learning curves
    python -m experiments.credit_truth.run --out results --noise         # and with noisy texts
    python -m experiments.credit_truth.run --out quick --quick           # one seed, seconds
    python -m experiments.credit_truth.run --out design --design         # the worlds for design
    python -m experiments.credit_truth.run --out graded --graded         # those with scores
    python -m experiments.credit_truth.run --out mine --estimator grpo --estimator graphgpo

Finished units (a world, a kind of policy, a seed) are skipped; noise has one seed. New estimators
and changed defaults are detected; after a change of code, delete the folder.
"""

from experiments import options
from experiments.credit_truth import learning
from experiments.credit_truth.judge import MANY, judge, made_by, units
from experiments.credit_truth.noise.judge import judge_noisy, noisy, noisy_made_by
from experiments.credit_truth.worlds.table import DESIGN_WORLDS, GRADED_WORLDS, WORLDS
from experiments.jobs import made
from experiments.report import publish


def main() -> None:
    parser = options.parser(__doc__)
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
    given = parser.parse_args()
    out, workers, estimators = given.out, given.workers, tuple(given.estimator)
    worlds = GRADED_WORLDS if given.graded else DESIGN_WORLDS if given.design else WORLDS
    chosen = units(
        tuple(worlds),
        num_seeds=1 if given.quick else given.seeds,
        num_groups=MANY if given.quick else 2 * MANY,
        estimators=estimators,
    )
    rows = made(out / "units", chosen, judge, made_by, workers)
    publish(rows, out, "graded" if given.graded else "credit-truth")
    if given.learning:
        runs = list(learning.curves_of(tuple(worlds), estimators))
        curves = made(out / "curves", runs, learning.learn, learning.made_by, workers)
        publish(curves, out, "learning")
    if given.noise:
        disturbed = noisy([unit for unit in chosen if not unit.seed])
        under_noise = made(out / "noise-units", disturbed, judge_noisy, noisy_made_by, workers)
        publish(under_noise, out, "noise")


if __name__ == "__main__":
    main()
