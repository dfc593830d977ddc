"""Can credit be believed where agents are long, and tasks of mixed difficulty? A short comparison.

    python -m experiments.credit_truth.believe --design --estimator reach --estimator grpo
    python -m experiments.credit_truth.believe --design --only "waits 3" --by-world
    python -m experiments.credit_truth.believe --judging --out results       # all that is published

Kinds of worlds: the old ones, those with scores, the old ones with 3, 9 or 30 waits after each
step, long ones, and batches of 16 tasks of mixed difficulty that share a policy. Without `--out`
nothing is kept; with it, what is finished there is skipped: after a change of code, delete it.
"""

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from experiments.credit_truth.belief import CALIBRATION, CENTRE, Log
from experiments.credit_truth.believe_report import tables
from experiments.credit_truth.credit import OF_VIEW, judged
from experiments.credit_truth.judge import MANY, Played, Unit, made_by, units
from experiments.credit_truth.policies import LONG_POLICIES, MIXED_POLICIES, POLICIES
from experiments.credit_truth.worlds.table import (
    DESIGN_LONG,
    DESIGN_MIXED,
    DESIGN_WORLDS,
    GRADED_WORLDS,
    JUDGING_LONG,
    JUDGING_MIXED,
    WORLDS,
)
from experiments.episodes import Floats, credit_of
from experiments.jobs import made
from experiments.report import publish

WAITS = (3, 9, 30)
_BATCHES = 4
_MORE_SEEDS = 3

_FIGURES: dict[str, pl.DataType] = {
    **dict.fromkeys(("one", "many", *CALIBRATION, *CENTRE), pl.Float64()),
    "bins": pl.List(pl.List(pl.Float64())),
}
"""Columns that a row may lack."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A unit, as one kind of worlds logs it."""

    kind: str
    waits: int
    unit: Unit

    @property
    def name(self) -> str:
        """Name of the file of rows."""
        return f"{self.unit.name}-{self.waits}"


def cases(
    kinds: dict[str, list[str]], *, num_seeds: int, estimators: tuple[str, ...]
) -> Iterator[Case]:
    """Yield the cases of the worlds of each kind."""
    for kind, worlds in kinds.items():
        waits = int(kind.split()[1]) if kind.startswith("waits") else 0
        policies = {"long": LONG_POLICIES, "mixed": MIXED_POLICIES}.get(kind, POLICIES)
        chosen = units(
            worlds,
            num_seeds=num_seeds * (_MORE_SEEDS if kind in ("long", "mixed") else 1),
            num_groups=_BATCHES * MANY if kind == "mixed" else MANY,
            estimators=estimators,
            policies=policies,
        )
        yield from (Case(kind=kind, waits=waits, unit=unit) for unit in chosen)


def kinds_of(*, design: bool) -> dict[str, list[str]]:
    """Return the worlds of each kind, for design or to judge."""
    old = list(DESIGN_WORLDS if design else WORLDS)
    return {
        "old": old,
        "graded": list(GRADED_WORLDS),
        **{f"waits {number}": old for number in WAITS},
        "long": list(DESIGN_LONG if design else JUDGING_LONG),
        "mixed": list(DESIGN_MIXED if design else JUDGING_MIXED),
    }


def case_made_by(case: Case) -> str:
    """Return the fingerprint of a case's rows: all that determines them but the code."""
    return json.dumps({"case": asdict(case), "unit": made_by(case.unit)}, sort_keys=True)


def judge_case(case: Case) -> pl.DataFrame:
    """Return a row for each credit, always the same."""
    played = Played.of(case.unit)
    log, rollouts, best = Log.of(played, case.waits), played.rollouts, played.best_gain()
    of_case = {"kind": case.kind, "world": case.unit.world, "policy": case.unit.policy}
    of_case |= {"seed": case.unit.seed, "success": played.exact.success}
    view = played.world.view[rollouts.state]
    truth = played.exact.view_advantage[view, rollouts.action]
    rows: list[dict[str, Any]] = [{"credit": OF_VIEW[0]} | _fractions(played, truth, best)]
    for name, options in judged(case.unit.estimators).items():
        credit = credit_of(log.steps, [options])
        estimator = name.partition(",")[0]
        advantage = credit[f"{estimator}_advantage"].to_numpy().astype("float64")
        row = {"credit": name} | _fractions(played, advantage[log.place], best)
        if not case.waits:
            row |= log.centre(name, options, advantage)
        if f"{estimator}_value" in credit.column_names:
            row |= log.calibration(credit[f"{estimator}_value"].to_numpy().astype("float64"))
        rows.append(row)
    lacking: dict[str, Any] = dict.fromkeys(_FIGURES)
    return pl.DataFrame([of_case | lacking | row for row in rows], schema_overrides=_FIGURES)


def _fractions(played: Played, credit: Floats, best: float) -> dict[str, float]:
    """Return the fraction of the true gain with one group, if all have the task, and with many."""
    sizes = {"many": MANY} | ({"one": 1} if len(played.world.starts) == 1 else {})
    return {
        name: float(played.gains(played.gradients(credit, num_groups)).mean()) / best
        for name, num_groups in sizes.items()
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = options.add_mutually_exclusive_group(required=True)
    which.add_argument("--design", action="store_true", help="worlds to design estimators on")
    which.add_argument("--judging", action="store_true", help="worlds that judge: look once")
    options.add_argument("--estimator", action="append", default=[], help="by default all")
    options.add_argument(
        "--only", action="append", default=[], help="kinds of worlds, such as long"
    )
    options.add_argument(
        "--seeds", type=int, default=1, help="policies of each kind in a world; thrice where long"
    )
    options.add_argument("--by-world", action="store_true", help="the fraction in each world too")
    options.add_argument("--out", type=Path, help="what is finished there is kept")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = options.parse_args()
    kinds = kinds_of(design=given.design)
    wanted = {kind: worlds for kind, worlds in kinds.items() if kind in (given.only or kinds)}
    chosen = list(cases(wanted, num_seeds=given.seeds, estimators=tuple(given.estimator)))
    folder = given.out and given.out / "cases"
    rows = made(folder, chosen, judge_case, case_made_by, given.workers)
    if given.out:
        publish(rows, given.out, "believe")
    else:
        print(tables(rows, in_worlds=given.by_world))


if __name__ == "__main__":
    main()
