"""What estimators of turns share: which steps have the same place in their trajectories."""

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.steps.arrays import Ints, factorise_pairs


def turn_of_step(batch: StepBatch) -> tuple[Ints, int]:
    """Return a code that steps of a group share at the same place of their trajectories.

    Returns:
        [num_steps] codes, and how many there are.
    """
    place = np.arange(batch.num_steps) - batch.trajectory_start[batch.trajectory_of_step]
    code, groups, _ = factorise_pairs(batch.group_of_step, place)
    return code, len(groups)
