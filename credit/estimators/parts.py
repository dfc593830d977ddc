"""The two parts that most estimators are made of."""

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.relative import Normalize, StatOver, relative
from graphcredit.credit.steps.arrays import Floats


def episode_part(
    batch: StepBatch, values: Floats, *, normalize: Normalize, stat_over: StatOver
) -> Floats:
    """Return rel(x; group) of a value per trajectory, for every step of it.

    Args:
        batch: The steps.
        values: [num_trajectories] x.
        normalize: As in `relative`.
        stat_over: "steps" weighs each trajectory by its length in mean and std.

    Returns:
        [num_steps].
    """
    weights = batch.trajectory_length.astype(float) if stat_over == "steps" else None
    of_trajectory = relative(
        values, batch.group_of_trajectory, batch.num_groups, normalize=normalize, weights=weights
    )
    return of_trajectory[batch.trajectory_of_step]


def state_part(batch: StepBatch, values: Floats, *, normalize: Normalize) -> Floats:
    """Return rel(x; state group) of a value per step. [num_steps], from values [num_steps]."""
    return relative(values, batch.state_of_step, batch.num_nodes, normalize=normalize)
