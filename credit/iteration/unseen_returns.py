"""Differences in return that wins alone do not tell: of rollouts of a group with one success."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.steps.arrays import Floats, Ints, starts_of_runs, sum_per_run
from graphcredit.store.schema import ROUNDING


@dataclass(frozen=True, kw_only=True, slots=True)
class ReturnPairs:
    """Pairs of rollouts of a group whose returns differ."""

    number: int
    """How many there are."""
    difference: float
    """The sum of their differences."""

    @classmethod
    def all_of(cls, batch: StepBatch) -> "ReturnPairs":
        """Count all of them."""
        return _pairs(batch, batch.group_of_trajectory)

    @classmethod
    def alike(cls, batch: StepBatch) -> "ReturnPairs":
        """Count those of them whose success is the same."""
        return _pairs(batch, 2 * batch.group_of_trajectory + batch.is_success)


def _pairs(batch: StepBatch, code: Ints) -> ReturnPairs:
    """Count the pairs within each code; its returns, sorted, differ by (2k - n + 1) R_k in all."""
    returns = _rounded(batch)
    order = np.lexsort((returns, code))
    returns, code = returns[order], code[order]
    first = starts_of_runs(code)
    size = np.diff(first)
    rank = np.arange(len(code)) - np.repeat(first[:-1], size)
    weight = 2 * rank - np.repeat(size, size) + 1
    is_new = (np.diff(returns, prepend=np.nan) != 0) | (rank == 0)
    equal = np.diff(np.append(np.flatnonzero(is_new), len(code)))
    return ReturnPairs(
        number=int((size * (size - 1)).sum() - (equal * (equal - 1)).sum()) // 2,
        difference=float((weight * returns).sum()),
    )


def _rounded(batch: StepBatch) -> Floats:
    """Return [num_trajectories] returns that are equal where only the order of a sum differs."""
    returns, largest = batch.episode_return, np.zeros(batch.num_groups)
    terms = sum_per_run(np.abs(batch.reward), batch.trajectory_start)
    np.maximum.at(largest, batch.group_of_trajectory, terms)
    size = np.where(largest > 0, largest, 1.0)[batch.group_of_trajectory]
    unit = 10 * ROUNDING  # of that size: of the smallest numbers, their product would be 0
    return np.round(returns / size / unit) * unit * size
