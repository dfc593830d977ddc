"""Judge `graphcredit evidence` where the truth is known.

    python -m experiments.credit_truth.states.run --out states
    python -m experiments.credit_truth.states.run --out states --design      # the worlds for design

For each world and policy, groups are sampled and logged with each definition of a state. Evidence
judges each log; the exact yardstick says what credit by that definition is worth to learning.
"""

from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa

from experiments import options
from experiments.credit_truth.credit import judged
from experiments.credit_truth.judge import MANY, Played, Unit, group_gradients, made_by, units
from experiments.credit_truth.rollouts import step_table
from experiments.credit_truth.states.definitions import (
    NAMES,
    Visits,
    before,
    definitions,
    restated,
    with_ends,
)
from experiments.credit_truth.worlds.table import DESIGN_WORLDS, WORLDS
from experiments.episodes import GROUP_SIZE, Bools, Floats, Ints, advantages
from experiments.jobs import made
from experiments.report import publish
from graphcredit.credit.evidence.knowledge import Knowledge, knowledge_of
from graphcredit.credit.evidence.report import recommended
from graphcredit.credit.evidence.visits import Rollouts

NUM_GROUPS = 24
"""Groups that evidence sees."""

ESTIMATORS = ("reach", "graphgpo")
GROUPS_FOR_WORTH = 4 * MANY


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--design", action="store_true", help="the worlds for design")
    parser.add_argument("--seeds", type=int, default=1, help="policies of each kind in a world")
    given = parser.parse_args()
    chosen = units(
        tuple(DESIGN_WORLDS if given.design else WORLDS),
        num_seeds=given.seeds,
        num_groups=GROUPS_FOR_WORTH,
        estimators=ESTIMATORS,
    )
    rows = made(given.out / "units", chosen, judge, made_by, given.workers)
    publish(rows, given.out, "states")


def judge(unit: Unit) -> pl.DataFrame:
    """Return a row for each definition: what evidence says, and what its credit is worth."""
    played = Played.of(unit)
    rng = np.random.default_rng([crc32(unit.name.encode()), 7])
    rows: list[dict[str, Any]] = []
    of_all: dict[str, Knowledge] = {}
    steps = step_table(played.world, played.rollouts, lists="none")
    every = definitions(visits_of(played, rng), rng)
    for name, visits in zip(NAMES, every, strict=True):
        known = knowledge(played, before(visits, played.rollouts.is_last))
        of_all[name] = known
        beyond, less = known.beyond_chance(), of_all["true"].more_than(known)
        rows.append(
            {"world": unit.world, "policy": unit.policy, "seed": unit.seed, "definition": name}
            | {"company": known.company, "information": known.information().value}
            | {"guidance": known.guidance().value, "evidence": known.evidence().value}
            | {"beyond": beyond.value, "beyond_error": beyond.error}
            | {"less": less.value, "less_error": less.error}
            | _worth(played, restated(steps, visits))
        )
    is_best = [row["definition"] == recommended(of_all) for row in rows]
    return pl.DataFrame(rows).with_columns(recommended=pl.Series(is_best).cast(pl.Float64))


def visits_of(played: Played, rng: np.random.Generator) -> Visits:
    """Return the visits of a unit's episodes."""
    world, rollouts = played.world, played.rollouts
    is_last = rollouts.is_last
    state = with_ends(rollouts.state, rollouts.target[is_last], is_last)
    time = with_ends(rollouts.time, rollouts.time[is_last] + 1, is_last)
    action = with_ends(rollouts.action, np.zeros(is_last.sum(), np.int64), is_last)
    return Visits(
        state=state,
        shuffled=rng.permutation(world.num_states)[state],
        view=world.view[state],
        time=time,
        last_action=np.where(time > 0, np.roll(action, 1), -1),
    )


def knowledge(played: Played, node: Ints) -> Knowledge:
    """Return what nodes of steps tell in the first groups of a unit."""
    rollouts, is_seen = seen(played)
    return knowledge_of(rollouts, in_groups(played, node)[is_seen])


def in_groups(played: Played, node: Ints) -> Ints:
    """Return nodes of all steps, of which no two groups share one."""
    of_step = played.rollouts.episode // GROUP_SIZE
    return np.unique(of_step * (int(node.max()) + 1) + node, return_inverse=True)[1]


def seen(played: Played) -> tuple[Rollouts, Bools]:
    """Return the first rollouts of a unit as evidence sees them, and which steps are theirs."""
    rollouts, world = played.rollouts, played.world
    outcome = world.score[rollouts.target[rollouts.is_last]].reshape(-1, GROUP_SIZE)
    span = outcome.max(1) - outcome.min(1)
    kept = (span > 0) & (np.arange(len(span)) < NUM_GROUPS)
    units_of_group = (outcome - outcome.min(1)[:, None]) / np.where(span > 0, span, 1.0)[:, None]
    length = np.bincount(rollouts.episode).reshape(-1, GROUP_SIZE)
    group = np.repeat(np.cumsum(kept) - 1, GROUP_SIZE).reshape(-1, GROUP_SIZE)
    first = Rollouts(
        group=group[kept].ravel(), length=length[kept].ravel(), outcome=units_of_group[kept].ravel()
    )
    return first, kept[rollouts.episode // GROUP_SIZE]


def _worth(played: Played, steps: pa.Table) -> dict[str, float]:
    """Return the fraction of the true gain of each estimator's credit, for one group and many."""
    world, rollouts = played.world, played.rollouts
    best = played.best_gain()
    worth: dict[str, float] = {}
    for name, advantage in advantages(steps, judged(ESTIMATORS)).items():
        gradients = group_gradients(world, played.policy, rollouts, advantage)
        worth[f"{name} 1"] = mean_gain(played, gradients[:MANY]) / best
        summed = gradients.reshape(-1, MANY, *gradients.shape[1:]).sum(1)
        worth[f"{name} {MANY}"] = mean_gain(played, summed) / best
    return worth


def mean_gain(played: Played, gradients: Floats) -> float:
    """Return the mean gain of the step along each of some gradients."""
    return float(np.mean([played.gain(gradient) for gradient in gradients]))


if __name__ == "__main__":
    main()
