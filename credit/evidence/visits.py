"""What the other rollouts of a group say of each visit: of its state, and of its time alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Floats, Ints, distinct_pairs, sum_per_run
from graphcredit.credit.steps.complete import Steps
from graphcredit.store.schema import ROUNDING

PSEUDO_VISITS = 0.5
"""How many visits with the mean outcome a state is given: few visits say little."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollouts:
    """The rollouts of a log whose groups have different outcomes, one after the other."""

    group: Ints
    """[num_rollouts]."""
    length: Ints
    """[num_rollouts] steps."""
    outcome: Floats
    """[num_rollouts] return: 0 is the least of the group, 1 the greatest."""

    @property
    def of_step(self) -> Ints:
        """[num_steps] the rollout of each step."""
        return np.repeat(np.arange(len(self.length)), self.length)

    @property
    def time(self) -> Ints:
        """[num_steps] steps before each."""
        ends = np.cumsum(self.length)
        return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - self.length, self.length)


def rollouts_of(steps: Steps, group_of_step: Ints) -> tuple[Rollouts, Bools]:
    """Return the rollouts of groups with different outcomes, and which steps are theirs.

    The outcome is the return, or the success where all returns of a group are equal.

    Args:
        steps: Complete trajectories.
        group_of_step: [num_steps] their groups.
    """
    starts = steps.trajectory_start
    group, length = group_of_step[starts[:-1]], np.diff(starts)
    returns = sum_per_run(steps.reward, starts)
    size = sum_per_run(np.abs(steps.reward), starts)
    success = sum_per_run(steps.is_success.astype(np.float64), starts)
    by_return, differs = _in_units(returns, group, size)
    by_success, is_mixed = _in_units(success, group, np.ones(len(group)))
    kept = differs | is_mixed
    rollouts = Rollouts(
        group=np.unique(group[kept], return_inverse=True)[1],
        length=length[kept],
        outcome=np.where(differs, by_return, by_success)[kept],
    )
    return rollouts, np.repeat(kept, length)


def _in_units(values: Floats, group: Ints, size: Floats) -> tuple[Floats, Bools]:
    """Return values from 0 for the least of their group to 1, and whether they differ there."""
    num_groups = int(group.max(initial=-1)) + 1
    least, greatest = np.full(num_groups, np.inf), np.full(num_groups, -np.inf)
    largest = np.zeros(num_groups)
    np.minimum.at(least, group, values)
    np.maximum.at(greatest, group, values)
    np.maximum.at(largest, group, size)
    span = (greatest - least)[group]
    differs = span > ROUNDING * largest[group]
    return _over(values - least[group], np.where(differs, span, 0.0)), differs


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What others say of each visit; zero where nobody else is still under way."""

    surprise: Floats
    """[num_steps] outcome of the rollout, less the mean of others still under way at that time."""
    opinion: Floats
    """[num_steps] mean outcome of those of them that visit the state, less that of all of them."""
    has_company: Bools
    """[num_steps] whether another rollout of the group visits the state."""


def said_by_others(rollouts: Rollouts, node: Ints) -> Said:
    """Return what other rollouts of the group say of each visit.

    Only rollouts that are still under way at the time of the visit are asked: else those that last
    long, and often fail, would pass for knowledge of the state.

    Args:
        rollouts: The rollouts.
        node: [num_steps] the node of each step; no two groups share one.
    """
    of_step, time = rollouts.of_step, rollouts.time
    outcome, everyone = rollouts.outcome[of_step], np.arange(len(rollouts.length))
    num_all, sum_all = _under_way(rollouts, rollouts.group, everyone, rollouts.group[of_step], time)
    key_of_pair, visitor = distinct_pairs(node, of_step)
    num_here, sum_here = _under_way(rollouts, key_of_pair, visitor, node, time)
    others, others_here = num_all - 1, num_here - 1
    mean = _over(sum_all - outcome, others)
    trust = others_here / (others_here + PSEUDO_VISITS)
    num_visitors = np.bincount(key_of_pair, minlength=int(node.max(initial=-1)) + 1)
    return Said(
        surprise=np.where(others > 0, outcome - mean, 0.0),
        opinion=np.where(others > 0, trust * (_over(sum_here - outcome, others_here) - mean), 0.0),
        has_company=num_visitors[node] > 1,
    )


def _over(total: Floats, count: Ints | Floats) -> Floats:
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def _under_way(
    rollouts: Rollouts, key: Ints, visitor: Ints, wanted: Ints, time: Ints
) -> tuple[Ints, Floats]:
    """Return number and sum of the outcomes of the rollouts with a key that last beyond a time.

    Args:
        rollouts: The rollouts.
        key: [num_pairs] keys that rollouts have.
        visitor: [num_pairs] the rollout with the key.
        wanted: [num_steps] the key asked for.
        time: [num_steps].
    """
    span = int(rollouts.length.max(initial=0)) + 1
    place = key * span + rollouts.length[visitor]
    order = np.argsort(place, kind="stable")
    place, sums = place[order], np.cumsum(rollouts.outcome[visitor[order]])
    sums = np.concatenate(([0.0], sums))
    first = np.searchsorted(place, wanted * span + time, "right")
    last = np.searchsorted(place, (wanted + 1) * span, "left")
    return last - first, sums[last] - sums[first]


def swaps(rollouts: Rollouts, number: int) -> Iterator[Ints]:
    """Yield [num_steps] the step whose state each step gets, some times; always the same.

    States change places between rollouts of a group at the same time. Who gives to whom is drawn
    once, and changes only when a rollout ends: states that last go on lasting.

    Args:
        rollouts: The rollouts.
        number: How many times.
    """
    of_step, time, rng = rollouts.of_step, rollouts.time, np.random.default_rng(0)
    group = rollouts.group[of_step]
    places = np.lexsort((time, group))
    for _ in range(number):
        giver = np.empty_like(places)
        giver[places] = np.lexsort((rng.random(len(rollouts.length))[of_step], time, group))
        yield giver
