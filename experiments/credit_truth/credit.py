"""The advantages that a trainer would get of sampled episodes, and those of who knows the truth."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from experiments.credit_truth.exact import Exact, distances
from experiments.credit_truth.rollouts import LISTS, Lists, step_table
from experiments.credit_truth.settings import TUNED
from experiments.credit_truth.world import World
from experiments.episodes import Floats, Rollouts, advantages
from graphcredit.credit.estimators.table import ESTIMATORS, Assigner, configure, estimator_named
from graphcredit.credit.inputs.table import MENTIONS

Key = tuple[str, str]
"""Name of a credit, and the lists that it saw; no lists if it does not read them."""

Q_MINUS_V: Key = ("true Q - V", "")
OF_VIEW: Key = ("true Q - V of the view", "")
PROGRESS: Key = ("true progress", "")
REFERENCES: tuple[Key, ...] = (Q_MINUS_V, OF_VIEW, PROGRESS)
"""Credits of somebody who knows the true state, the exact policy, or the shortest way."""


def judged(names: Sequence[str] = ()) -> dict[str, Assigner]:
    """Return the named estimators; by default those of `TUNED` and all that need no entities."""
    wanted = names or [*(row.name for row in ESTIMATORS if MENTIONS not in row.inputs), *TUNED]
    tuned = {name: TUNED[name] for name in wanted if name in TUNED}
    return configure(name for name in wanted if name not in tuned) | tuned


def reads_lists(name: str) -> bool:
    """Return whether an estimator reads the lists of admissible actions."""
    row = estimator_named(name.partition(",")[0])
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
    conditions: list[tuple[Lists, dict[str, Assigner]]] = [("none", others)]
    conditions += product(LISTS, [readers])
    for lists, judged_so in conditions:
        steps = step_table(world, rollouts, lists=lists)
        for name, advantage in advantages(steps, judged_so).items():
            yield (name, lists if name in readers else ""), advantage


def progress(world: World, rollouts: Rollouts) -> Floats:
    """Return [num_steps] how much nearer to a win each step led; see `exact.distances`."""
    remaining = distances(world)
    return remaining[rollouts.state] - remaining[rollouts.target]
