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
