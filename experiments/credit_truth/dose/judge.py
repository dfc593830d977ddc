"""Judge every credit of a unit as it is, and at an equal dose.

Three stages: `as is`; `same groups`, where groups in which one credit is silent are silent for all;
and `equal dose`, where each group also has as many steps with credit, and the same sum of |A|.
"""

from typing import Any

import numpy as np
import polars as pl

from experiments.credit_truth.credit import GROUP_SIZE, credits_of, judged
from experiments.credit_truth.dose.equal import carries, common_number, equal_dose, only_in
from experiments.credit_truth.judge import MANY, Played, Unit, group_gradients
from experiments.credit_truth.rollouts import Rollouts
from experiments.credit_truth.world import Floats

STAGES: tuple[str, ...] = ("as is", "same groups", "equal dose")


def judge_dose(unit: Unit) -> pl.DataFrame:
    """Return a row for each credit and stage, of the same rollouts as `judge.judge`.

    Its columns are `steps` and `groups`, the shares that carry credit; `size`, the mean of |A| over
    all steps; and the fraction of the true gain with one group and with `MANY`.
    """
    played = Played.of(unit)
    world, rollouts, best = played.world, played.rollouts, played.best_gain()

    def fractions(credit: Floats) -> dict[str, float]:
        every = group_gradients(world, played.policy, rollouts, credit)
        return {
            f"fraction_{number}": float(
                np.mean([played.gain(gradient) for gradient in summed]) / best
            )
            for number in (1, MANY)
            for summed in [every.reshape(-1, number, *every.shape[1:]).sum(1)]
        }

    of_unit = {"world": unit.world, "policy": unit.policy, "seed": unit.seed}
    found = dict(credits_of(world, rollouts, judged(unit.estimators), played.exact))
    rows: list[dict[str, Any]] = []
    for (name, lists), stages in staged(found, rollouts, played.rng).items():
        for stage, credit in zip(STAGES, stages, strict=True):
            rows.append(
                of_unit
                | {"credit": name, "lists": lists, "stage": stage}
                | dose_of(credit, rollouts)
                | fractions(credit)
            )
    return pl.DataFrame(rows)


def staged(
    found: dict[tuple[str, str], Floats], rollouts: Rollouts, rng: np.random.Generator
) -> dict[tuple[str, str], tuple[Floats, Floats, Floats]]:
    """Return the advantages of every credit in the order of `STAGES`."""
    group = rollouts.episode // GROUP_SIZE
    number, draw = common_number([*found.values()], group), rng.random(len(group))
    return {
        key: (credit, only_in(credit, group, number), equal_dose(credit, group, number, draw))
        for key, credit in found.items()
    }


def dose_of(credit: Floats, rollouts: Rollouts) -> dict[str, float]:
    """Return the share of steps and of groups that carry credit, and the mean of |A|."""
    speaks = carries(credit)
    groups = np.bincount(rollouts.episode // GROUP_SIZE, speaks) > 0
    return {
        "steps": float(speaks.mean()),
        "groups": float(groups.mean()),
        "size": float(np.abs(credit).mean()),
    }
