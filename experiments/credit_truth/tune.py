"""Try every setting of `settings.py` on the worlds for design.

    python -m experiments.credit_truth.tune              # all settings, the best of each first
    python -m experiments.credit_truth.tune --graded     # on the worlds with scores

The best has the greatest sum of its fractions with one group and with many.
"""

import argparse
from collections.abc import Mapping
from typing import Any

import polars as pl

from experiments.credit_truth.averages import averages
from experiments.credit_truth.judge import MANY, Played, units
from experiments.credit_truth.rollouts import step_table
from experiments.credit_truth.settings import tried
from experiments.credit_truth.worlds.table import DESIGN_WORLDS, GRADED_WORLDS
from experiments.episodes import advantages
from experiments.markdown import number, table
from graphcredit.credit.estimators.table import Assigner
from graphcredit.store.options import options_as_json

_SEEDS = 2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graded", action="store_true", help="the worlds with scores")
    worlds = GRADED_WORLDS if parser.parse_args().graded else DESIGN_WORLDS
    settings = {f"{name}, {number}": options for number, (name, options) in enumerate(tried())}
    rows = [row for name in worlds for row in _rows(name, settings)]
    print(_table(pl.DataFrame(rows), settings))


def _rows(world: str, settings: Mapping[str, Assigner]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for unit in units([world], num_seeds=_SEEDS, num_groups=2 * MANY, estimators=()):
        played = Played.of(unit)
        steps = step_table(played.world, played.rollouts, lists="none")
        best = played.best_gain()
        for name, credit in advantages(steps, settings).items():
            for num_groups in (1, MANY):
                gains = played.gains(played.gradients(credit, num_groups))
                row = {"world": world, "policy": unit.policy, "setting": name}
                fraction = float(gains.mean()) / best
                rows.append(row | {"num_groups": num_groups, "fraction": fraction})
    return rows


def _table(rows: pl.DataFrame, settings: Mapping[str, Assigner]) -> str:
    means = averages(rows, ["fraction"], ["setting", "num_groups"])

    def fractions(name: str) -> list[float]:
        return [means[name, num_groups]["fraction"].value for num_groups in (1, MANY)]

    order = sorted(settings, key=lambda name: (name.partition(",")[0], -sum(fractions(name))))
    return table(
        ["estimator", "setting", "fraction, 1 group", f"fraction, {MANY} groups"],
        [
            [name.partition(",")[0], _changed(settings[name]), *map(number, fractions(name))]
            for name in order
        ],
    )


def _changed(options: Assigner) -> str:
    """Return the options that are not the default."""
    default = options_as_json(type(options)())
    chosen = options_as_json(options).items()
    return " ".join(f"{name}={value}" for name, value in chosen if value != default[name])


if __name__ == "__main__":
    main()
