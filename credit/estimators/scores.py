"""Scores of the states that steps led to, and what they gain."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.credit.steps.arrays import Floats, Ints
from graphcredit.store.errors import InputError
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.schema import LARGEST_NUMBER


def known_scores(column: pa.ChunkedArray) -> Floats:
    """Return the scores of steps, NaN where nobody judged. [num_steps].

    Raises:
        InputError: One is not finite, or too large.
    """
    values = numpy_of(column)
    broken = ~(np.abs(values) <= LARGEST_NUMBER)
    if broken.any():
        raise InputError(
            f"score must be a number from {-LARGEST_NUMBER:g} to {LARGEST_NUMBER:g}, or null: "
            f"{int(broken.sum()):,} of {len(values):,} steps have others, the first "
            f"{values[broken][0]}. `graphcredit check` names them; where nobody judged, write null"
        )
    return np.where(numpy_of(pc.is_null(column)), np.nan, values)


def gains(score: Floats, trajectory_of_step: Ints) -> Floats:
    """Return by how much each step's score is above the last one before it. [num_steps].

    The first score of a trajectory has nothing before it, and steps without a score gain nothing:
    what they gained is in the next score. So the gains of a trajectory add up to its last score
    less its first one.

    Args:
        score: [num_steps] NaN where nobody judged.
        trajectory_of_step: [num_steps] ascending.
    """
    judged = np.flatnonzero(~np.isnan(score))
    before, after = judged[:-1], judged[1:]
    follows = trajectory_of_step[before] == trajectory_of_step[after]
    gained = np.zeros(len(score))
    gained[after[follows]] = score[after[follows]] - score[before[follows]]
    return gained


def potential_rewards(score: Floats, trajectory_start: Ints, gamma: float) -> Floats:
    """Return γ Φ(s') - Φ(s) of each step, Φ being the score: rewards that change no return.

    Φ is 0 before the first step and after the last one, and a state that nobody judged has the last
    score before it, 0 without one. So the discounted sum is 0 over every trajectory, whatever the
    scores say: added to rewards, they move credit in time and leave the best policy the best. Ng,
    Harada and Russell 1999.

    Args:
        score: [num_steps] NaN where nobody judged.
        trajectory_start: [num_trajectories + 1] first step of each trajectory.
        gamma: The discount of the returns.
    """
    first, last = trajectory_start[:-1], trajectory_start[1:] - 1
    is_known = ~np.isnan(score)
    is_known[first] = True
    judged_at = np.maximum.accumulate(np.where(is_known, np.arange(len(score)), 0))
    after = np.nan_to_num(score)[judged_at]
    before = np.roll(after, 1)
    before[first] = 0.0
    after[last] = 0.0
    return gamma * after - before
