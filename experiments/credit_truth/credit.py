"""The advantages that a trainer would get of sampled episodes, and those of who knows the truth."""

import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from experiments.credit_truth.columns import LISTS, Lists, step_table
from experiments.credit_truth.exact import Exact, distances
from experiments.credit_truth.rollouts import Rollouts
from experiments.credit_truth.world import Floats, World
from graphcredit.credit.estimators.table import ESTIMATORS, Assigner, configure, estimator_named
from graphcredit.credit.inputs.table import MENTIONS
from graphcredit.credit.iteration.in_memory import compute
from graphcredit.store.errors import CreditWarning

GROUP_SIZE = 8

Key = tuple[str, str]
"""Name of a credit, and the lists that it saw; no lists if it does not read them."""

Q_MINUS_V: Key = ("true Q - V", "")
OF_VIEW: Key = ("true Q - V of the view", "")
PROGRESS: Key = ("true progress", "")
REFERENCES: tuple[Key, ...] = (Q_MINUS_V, OF_VIEW, PROGRESS)
"""Credits of somebody who knows the true state, the exact policy, or the shortest way."""


def judged(names: Sequence[str] = ()) -> dict[str, Assigner]:
    """Return the named estimators; by default all that need no entities, which worlds lack."""
    return configure(names or [row.name for row in ESTIMATORS if MENTIONS not in row.inputs])


def reads_lists(name: str) -> bool:
    """Return whether an estimator reads the lists of admissible actions."""
    row = estimator_named(name)
    read = {*row.reads}.union(*(each.reads for each in row.inputs))
    return "admissible_actions" in read


def credits_of(
    world: World, rollouts: Rollouts, estimators: Mapping[str, Assigner], exact: Exact
) -> Iterator[tuple[Key, Floats]]:
    """Yield each credit and its [num_steps] advantages.

    Args:
        world: Where the episodes were played.
        rollouts: The episodes; `GROUP_SIZE` that follow each other form a group.
        estimators: Result of `judged`.
        exact: Exact values of the policy that played.
    """
    yield Q_MINUS_V, exact.advantage[rollouts.time, rollouts.state, rollouts.action]
    yield OF_VIEW, exact.view_advantage[world.view[rollouts.state], rollouts.action]
    yield PROGRESS, progress(world, rollouts)
    readers = {name: options for name, options in estimators.items() if reads_lists(name)}
    others = {name: options for name, options in estimators.items() if name not in readers}
    for name, found in advantages(world, rollouts, others, lists="none").items():
        yield (name, ""), found
    for lists in LISTS:
        for name, found in advantages(world, rollouts, readers, lists=lists).items():
            yield (name, lists), found


def progress(world: World, rollouts: Rollouts) -> Floats:
    """Return [num_steps] how much nearer to a win each step led; see `exact.distances`."""
    remaining = distances(world)
    return remaining[rollouts.state] - remaining[rollouts.target]


def advantages(
    world: World, rollouts: Rollouts, estimators: Mapping[str, Assigner], *, lists: Lists
) -> dict[str, Floats]:
    """Return the [num_steps] column `<name>_advantage` of each estimator."""
    if not estimators:
        return {}
    steps = step_table(world, rollouts, group_size=GROUP_SIZE, lists=lists)
    with warnings.catch_warnings():
        # Lists that lack or say nothing are what some conditions are about.
        warnings.simplefilter("ignore", CreditWarning)
        found = compute(steps, estimators=list(estimators.values()), on_incomplete="raise")
    return {name: found[f"{name}_advantage"].to_numpy().astype(np.float64) for name in estimators}
