"""Run or resume the experiment on rewards and scores of turns.

    python -m experiments.credit_truth.turns.run --out results
    python -m experiments.credit_truth.turns.run --out quick --quick     # one seed

Each credit is judged on the episodes as they are, with the scores of a judge, and with rewards of
turns that pay for each change of that score. Rows are in OUT/turns.parquet, the table in
OUT/turns.md.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa

from experiments import options
from experiments.credit_truth.judge import MANY, Played, Unit, made_by, units
from experiments.credit_truth.rollouts import step_table
from experiments.credit_truth.turns.judges import JUDGES, with_rewards, with_scores
from experiments.credit_truth.worlds.table import WORLDS
from experiments.episodes import advantages
from experiments.jobs import made
from experiments.report import publish
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.estimators.rloo import Rloo
from graphcredit.credit.estimators.table import Assigner
from graphcredit.credit.estimators.turn_credit import TurnCredit
from graphcredit.credit.estimators.turn_rloo import TurnRloo

_OF_REWARDS: Mapping[str, Assigner] = {
    "rloo": Rloo(),
    "turn_rloo": TurnRloo(),
    "turn_rloo, gamma 0.5": TurnRloo(gamma=0.5),
    "reach": Reach(),
}
READ: Mapping[str, Mapping[str, Assigner]] = {
    "nothing": _OF_REWARDS,
    "scores": {"turn_credit": TurnCredit()},
    "rewards": _OF_REWARDS,
}
"""How the judge's words are logged, to the credits that are judged so; an estimator's name comes
before a comma."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnUnit:
    """A unit whose states are judged."""

    unit: Unit

    @property
    def name(self) -> str:
        """Name of the file of rows."""
        return self.unit.name


def turns_made_by(of: TurnUnit) -> str:
    """Return the fingerprint of the rows: all that determines them but the code."""
    read = {logged: list(map(repr, judged.items())) for logged, judged in READ.items()}
    return json.dumps({"unit": made_by(of.unit), "read": read, "judges": list(JUDGES)})


def judge_turns(of: TurnUnit) -> pl.DataFrame:
    """Return a row for each judge, way to log, credit and number of groups."""
    played = Played.of(of.unit)
    best = played.best_gain()
    of_unit = {"world": of.unit.world, "policy": of.unit.policy, "seed": of.unit.seed}
    rows: list[dict[str, Any]] = []
    for judge, logged, steps in _logs(played, of.unit.name):
        for name, credit in advantages(steps, READ[logged]).items():
            for num_groups in (1, MANY):
                gains = played.gains(played.gradients(credit, num_groups))
                found = {"judge": judge, "logged": logged, "credit": name}
                found |= {"num_groups": num_groups, "fraction": float(gains.mean()) / best}
                rows.append(of_unit | found)
    return pl.DataFrame(rows)


def _logs(played: Played, name: str) -> Iterator[tuple[str, str, pa.Table]]:
    """Yield judge, way to log, and the steps."""
    steps = step_table(played.world, played.rollouts, lists="none")
    yield "nobody", "nothing", steps
    for judge, says in JUDGES.items():
        rng = np.random.default_rng(crc32(f"{name} {judge}".encode()))
        said = says(played, rng)
        yield judge, "scores", with_scores(steps, said)
        yield judge, "rewards", with_rewards(steps, said, played.rollouts)


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed")
    given = parser.parse_args()
    chosen = units(WORLDS, num_seeds=1 if given.quick else 5, num_groups=2 * MANY, estimators=())
    of_turns = [TurnUnit(unit=unit) for unit in chosen]
    rows = made(given.out / "turns", of_turns, judge_turns, turns_made_by, given.workers)
    publish(rows, given.out, "turns")


if __name__ == "__main__":
    main()
