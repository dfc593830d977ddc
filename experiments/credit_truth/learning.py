"""Tabular learning curves: what a policy learns from each credit, with few rollouts.

A run starts from a policy of `POLICIES`. In each iteration it plays one group, and its logits move
by the rate times Σ A ∇log π / `GROUP_SIZE`. Every rate of `RATES` is tried. The rate of a credit in
a world is the best on the seeds of `TUNING_SEEDS`; the other seeds are reported. Nothing is
remembered between iterations.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import cast
from zlib import crc32

import numpy as np
import polars as pl

from experiments.credit_truth.credit import (
    OF_VIEW,
    PROGRESS,
    REFERENCES,
    judged,
    progress,
    reads_lists,
)
from experiments.credit_truth.exact import Exact, policy_of, success_of
from experiments.credit_truth.judge import group_gradients
from experiments.credit_truth.policies import POLICIES, logits_of
from experiments.credit_truth.rollouts import Lists, sample, step_table
from experiments.credit_truth.world import World
from experiments.credit_truth.worlds.table import world_named
from experiments.episodes import GROUP_SIZE, Floats, Rollouts, advantages
from graphcredit.store.options import options_as_json

ITERATIONS = 25
RATES: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
TUNING_SEEDS: tuple[int, ...] = (100, 101)
REPORTED_SEEDS: tuple[int, ...] = (0, 1, 2, 3)
_LISTS: tuple[Lists, ...] = ("exact", "none")


@dataclass(frozen=True, kw_only=True, slots=True)
class Curves:
    """All runs of one credit in one world."""

    world: str
    credit: str
    lists: str
    """Empty if the credit reads none."""

    @property
    def name(self) -> str:
        """Name of the file of rows."""
        words = (self.world, self.credit.replace(" ", "-"), self.lists)
        return "-".join(word for word in words if word)


def curves_of(worlds: Iterable[str], estimators: tuple[str, ...]) -> Iterator[Curves]:
    """Yield each of some worlds with every credit."""
    keys = [*REFERENCES]
    for name in judged(estimators):
        keys += [(name, lists) for lists in (_LISTS if reads_lists(name) else ("",))]
    for world, (credit, lists) in product(worlds, keys):
        yield Curves(world=world, credit=credit, lists=lists)


def made_by(curves: Curves) -> str:
    """Return the fingerprint of the rows: all that determines them but the code."""
    is_reference = (curves.credit, curves.lists) in REFERENCES
    options = {} if is_reference else judged([curves.credit])
    return json.dumps(
        {
            "curves": asdict(curves),
            "options": {name: options_as_json(chosen) for name, chosen in options.items()},
            "sizes": [ITERATIONS, RATES, TUNING_SEEDS, REPORTED_SEEDS, GROUP_SIZE],
        },
        sort_keys=True,
    )


def learn(curves: Curves) -> pl.DataFrame:
    """Return a row for each run, with its [1 + ITERATIONS] exact success."""
    world = world_named(curves.world)
    runs = list(product(POLICIES, (*TUNING_SEEDS, *REPORTED_SEEDS)))
    begin = np.stack([logits_of(world, policy, seed) for policy, seed in runs])
    logits = np.tile(begin, (len(RATES), 1, 1))
    rate = np.repeat(RATES, len(runs))
    rng = np.random.default_rng([crc32(curves.world.encode()), 2])
    success = [successes(world, logits)]
    for _ in range(ITERATIONS):
        policies = np.stack([policy_of(world, own) for own in logits])
        rollouts = sample(world, policies, GROUP_SIZE, rng)
        credit = credit_of(curves, world, policies, rollouts)
        gradient = group_gradients(world, policies, rollouts, credit)
        logits = logits + rate[:, None, None] * gradient / GROUP_SIZE
        success.append(successes(world, logits))
    curve = np.stack(success, axis=1).tolist()
    return pl.DataFrame(
        [
            asdict(curves) | {"rate": own_rate, "policy": policy, "seed": seed, "curve": own}
            for (own_rate, (policy, seed)), own in zip(product(RATES, runs), curve, strict=True)
        ]
    )


def successes(world: World, logits: Floats) -> Floats:
    return np.array([success_of(world, policy_of(world, own)) for own in logits])


def credit_of(curves: Curves, world: World, policies: Floats, rollouts: Rollouts) -> Floats:
    """Return [num_steps] advantages; each run has one group, and each group its own policy."""
    key = (curves.credit, curves.lists)
    if key == PROGRESS:
        return progress(world, rollouts)
    if key in REFERENCES:
        return _true_advantage(world, policies, rollouts, of_view=key == OF_VIEW)
    lists = cast("Lists", curves.lists or "none")
    steps = step_table(world, rollouts, lists=lists)
    return advantages(steps, judged([curves.credit]))[curves.credit]


def _true_advantage(world: World, policies: Floats, rollouts: Rollouts, *, of_view: bool) -> Floats:
    run, view = rollouts.episode // GROUP_SIZE, world.view[rollouts.state]
    advantage = np.empty(len(run))
    for number, policy in enumerate(policies):
        of_run, exact = run == number, Exact.of(world, policy)
        time, state, action = rollouts.time[of_run], rollouts.state[of_run], rollouts.action[of_run]
        advantage[of_run] = (
            exact.view_advantage[view[of_run], action]
            if of_view
            else exact.advantage[time, state, action]
        )
    return advantage
