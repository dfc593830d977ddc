"""Tabular learning curves at one rate, with credit as it is and at an equal dose.

As in `learning`, but every credit learns at `RATE`, which is the middle one of those that are tried
there, so that a credit is not helped by a rate of its own. At an equal dose, each group keeps as
many steps as the credit that has fewest of them on the same rollouts, of all estimators, true
progress, and the credit itself.
"""

import json
from dataclasses import asdict
from itertools import product
from zlib import crc32

import numpy as np
import polars as pl

from experiments.credit_truth import learning
from experiments.credit_truth.columns import LISTS
from experiments.credit_truth.credit import (
    GROUP_SIZE,
    advantages,
    judged,
    progress,
    reads_lists,
)
from experiments.credit_truth.dose.equal import carries, common_number, equal_dose
from experiments.credit_truth.exact import policy_of
from experiments.credit_truth.judge import group_gradients
from experiments.credit_truth.learning import (
    ITERATIONS,
    REPORTED_SEEDS,
    Curves,
    credit_of,
    successes,
)
from experiments.credit_truth.policies import POLICIES, logits_of
from experiments.credit_truth.rollouts import Rollouts, sample
from experiments.credit_truth.world import Floats, World
from experiments.credit_truth.worlds.table import world_named
from graphcredit.store.options import options_as_json

RATE = 3.0
STAGES: tuple[str, ...] = ("as is", "equal dose")


def made_by(curves: Curves, estimators: tuple[str, ...]) -> str:
    """Return the fingerprint of the rows: all that determines them but the code."""
    beside = {name: options_as_json(options) for name, options in judged(estimators).items()}
    return f"{learning.made_by(curves)} at rate {RATE:g} beside {json.dumps(beside)}"


def learn_at_equal_dose(curves: Curves, estimators: tuple[str, ...]) -> pl.DataFrame:
    """Return a row for each run and stage, with its [1 + ITERATIONS] exact success.

    `steps` and `size` are the share of steps that carried credit, and their mean |A| with the
    others as 0, over the whole run.

    Args:
        curves: A world and a credit.
        estimators: Estimators beside which its dose is equal; none for all.
    """
    world = world_named(curves.world)
    runs = list(product(POLICIES, REPORTED_SEEDS))
    begin = np.stack([logits_of(world, policy, seed) for policy, seed in runs])
    logits = np.tile(begin, (len(STAGES), 1, 1))
    rng = np.random.default_rng([crc32(curves.world.encode()), 6])
    success, doses = [successes(world, logits)], np.zeros((3, len(logits)))
    for _ in range(ITERATIONS):
        policies = np.stack([policy_of(world, own) for own in logits])
        rollouts = sample(world, policies, GROUP_SIZE, rng)
        credit = credit_of(curves, world, policies, rollouts)
        group = rollouts.episode // GROUP_SIZE
        equal = _at_equal_dose(credit, world, rollouts, estimators, rng)
        credit = np.where(group < len(runs), credit, equal)
        gradient = group_gradients(world, policies, rollouts, credit)
        logits = logits + RATE * gradient / GROUP_SIZE
        success.append(successes(world, logits))
        for total, value in zip(
            doses, (np.ones(len(group)), carries(credit), np.abs(credit)), strict=True
        ):
            total += np.bincount(group, value)
    curve = np.stack(success, axis=1).tolist()
    every = [(stage, policy, seed) for stage, (policy, seed) in product(STAGES, runs)]
    return pl.DataFrame(
        [
            asdict(curves)
            | {"stage": stage, "policy": policy, "seed": seed}
            | {"steps": steps / played, "size": size / played, "curve": own}
            for (stage, policy, seed), own, (played, steps, size) in zip(
                every, curve, doses.T.tolist(), strict=True
            )
        ]
    )


def _at_equal_dose(
    credit: Floats,
    world: World,
    rollouts: Rollouts,
    estimators: tuple[str, ...],
    rng: np.random.Generator,
) -> Floats:
    chosen = judged(estimators)
    readers = {name: options for name, options in chosen.items() if reads_lists(name)}
    others = {name: options for name, options in chosen.items() if name not in readers}
    found = [credit, progress(world, rollouts)]
    found += advantages(world, rollouts, others, lists="none").values()
    for lists in LISTS:
        found += advantages(world, rollouts, readers, lists=lists).values()
    group = rollouts.episode // GROUP_SIZE
    return equal_dose(credit, group, common_number(found, group), rng.random(len(group)))
