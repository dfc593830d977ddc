"""How well states tell the outcome of rollouts that did not make them, with its uncertainty.

For each visit of a state by a rollout, the other rollouts of its group say what to expect. Two
correlations judge that, over all visits of a log:

    information = corr(opinion, surprise)
    guidance    = corr(change of opinion by a step, surprise after it)
    evidence    = information + 2 · guidance

Opinion and surprise are those of `visits.py`. Guidance asks what credit needs: whether a step to
another state tells that things got better. Both are 0 for time alone, for one state and for a state
of each visit, and near 0 for states at random: how near, swaps tell, in which states change places
between rollouts of a group at the same time. Evidence counts as such where it is beyond theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphcredit.credit.evidence.visits import Rollouts, said_by_others, swaps
from graphcredit.credit.steps.arrays import Bools, Floats, Ints

GUIDANCE_WEIGHT = 2.0
"""Chosen on the design worlds of `experiments/credit_truth`: guidance is the smaller number."""

_PARTS = 3
"""Parts of the way that information is told by."""

NUM_SWAPS = 8
"""Swaps that tell what chance would."""

Groups: TypeAlias = Bools | Ints | slice
"""Which groups count, or their places."""

_INFORMATION, _GUIDANCE = slice(0, 3), slice(3, 6)


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A number and how far it may be from the truth."""

    value: float
    error: float
    """Standard error, by leaving out one group at a time; infinite with fewer than two groups."""

    @property
    def is_positive(self) -> bool:
        """Whether the number is more than two standard errors above zero."""
        return self.value > 2 * self.error

    def __str__(self) -> str:
        """Return the number ± two standard errors."""
        return f"{self.value:.2f} ± {2 * self.error:.2f}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Knowledge:
    """What one definition of a state tells."""

    num_states: int
    """States in their groups."""
    company: float
    """Share of steps whose state another rollout of the group visits."""
    by_part: tuple[float, ...]
    """Information at the beginning, in the middle and at the end of the way."""
    sums: Floats
    """[num_groups, 6] Σ xy, Σ x², Σ y² of the two correlations."""
    by_chance: Floats
    """[num_groups, num_swaps, 6] the same of swapped states."""

    def information(self, groups: Groups = slice(None)) -> Estimate:
        """Return the information in some groups, by default in all."""
        return _estimate(self.sums[groups], lambda sums: _correlation(sums[..., _INFORMATION]))

    def guidance(self, groups: Groups = slice(None)) -> Estimate:
        """Return the guidance in some groups, by default in all."""
        return _estimate(self.sums[groups], lambda sums: _correlation(sums[..., _GUIDANCE]))

    def evidence(self, groups: Groups = slice(None)) -> Estimate:
        """Return the evidence in some groups, by default in all."""
        return _estimate(self.sums[groups], _evidence)

    def beyond_chance(self, groups: Groups = slice(None)) -> Estimate:
        """Return how much more evidence there is in some groups than where states are swapped."""
        both = np.concatenate([self.sums[:, None], self.by_chance], axis=1)[groups]

        def beyond(sums: Floats) -> Floats:
            evidence = _evidence(sums)
            return evidence[..., 0] - evidence[..., 1:].mean(-1)

        return _estimate(both, beyond)

    def more_than(self, other: "Knowledge", groups: Groups = slice(None)) -> Estimate:
        """Return how much more evidence this definition has than another one of the same log."""
        both = np.concatenate([self.sums, other.sums], axis=1)[groups]
        return _estimate(both, lambda sums: _evidence(sums[..., :6]) - _evidence(sums[..., 6:]))


def knowledge_of(rollouts: Rollouts, node: Ints) -> Knowledge:
    """Return what a definition of a state tells.

    Args:
        rollouts: Rollouts of groups with different outcomes; groups are numbered from 0.
        node: [num_steps] the node of each step; no two groups share one.
    """
    group = rollouts.group[rollouts.of_step]
    num_groups = int(group.max(initial=-1)) + 1
    longest = np.zeros(num_groups, np.int64)
    np.maximum.at(longest, group, rollouts.time + 1)
    part = rollouts.time * _PARTS // longest[group]
    said = said_by_others(rollouts, node)
    by_part = _correlation(_sums(said.opinion, said.surprise, part, _PARTS))
    return Knowledge(
        num_states=len(np.unique(node)),
        company=float(said.has_company.mean()) if len(node) else 0.0,
        by_part=tuple(by_part.tolist()),
        sums=_both(rollouts, node),
        by_chance=np.stack(
            [_both(rollouts, node[places]) for places in swaps(rollouts, NUM_SWAPS)], axis=1
        ),
    )


def _both(rollouts: Rollouts, node: Ints) -> Floats:
    """Return [num_groups, 6] the sums of information and of guidance."""
    said, of_step = said_by_others(rollouts, node), rollouts.of_step
    group = rollouts.group[of_step]
    num_groups = int(group.max(initial=-1)) + 1
    goes_on = np.flatnonzero(of_step[1:] == of_step[:-1])
    change, after = np.diff(said.opinion)[goes_on], said.surprise[goes_on + 1]
    information = _sums(said.opinion, said.surprise, group, num_groups)
    return np.concatenate([information, _sums(change, after, group[goes_on], num_groups)], axis=1)


def _sums(x: Floats, y: Floats, key: Ints, size: int) -> Floats:
    products = np.stack([x * y, x * x, y * y], axis=1)
    sums = np.zeros((size, 3))
    np.add.at(sums, key, products)
    return sums


def _correlation(sums: Floats) -> Floats:
    """Return [...] the correlation about zero of [..., 3] sums; 0 where one side is constant."""
    size = np.sqrt(np.maximum(sums[..., 1], 0.0) * np.maximum(sums[..., 2], 0.0))
    return np.divide(sums[..., 0], size, out=np.zeros(size.shape), where=size > _NOTHING)


_NOTHING = 1e-9
"""Smaller sizes are rounding."""


def _evidence(sums: Floats) -> Floats:
    guidance = _correlation(sums[..., _GUIDANCE])
    return _correlation(sums[..., _INFORMATION]) + GUIDANCE_WEIGHT * guidance


def _estimate(sums: Floats, figure: Callable[[Floats], Floats]) -> Estimate:
    """Return a figure of the sums of all groups, with the error that each group left out tells."""
    total, number = sums.sum(0), len(sums)
    if number < 2:
        return Estimate(value=float(figure(total)), error=float("inf"))
    without = figure(total - sums)
    spread = float(((without - without.mean()) ** 2).sum())
    return Estimate(value=float(figure(total)), error=(spread * (number - 1) / number) ** 0.5)
