"""A trajectory's past: counts of all that ended before it, which is what 3SPO may know."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.steps.arrays import Bools, Ints, distinct_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """The order in which trajectories ended, and counts over the iterations before this one."""

    num_ended_before: Ints
    """[num_trajectories] complete trajectories of the run that ended earlier, by iteration, time
    of the last step and trajectory id."""
    num_total: Ints
    """[num_nodes] trajectories of earlier iterations that acted in the node's state; 0 at a goal,
    where nobody acts."""
    num_success: Ints
    """[num_nodes] successful ones among them."""


def count_trajectories(
    *, trajectory_of_visit: Ints, node_of_visit: Ints, is_success: Bools, num_nodes: int
) -> tuple[Ints, Ints]:
    """Count for each node the trajectories that visit it, and the successful ones among them.

    Args:
        trajectory_of_visit: [num_visits].
        node_of_visit: [num_visits] a trajectory may visit a node repeatedly, and counts once.
        is_success: [num_trajectories].
        num_nodes: Nodes of all groups together.

    Returns:
        Two arrays [num_nodes].
    """
    trajectory, node = distinct_pairs(trajectory_of_visit, node_of_visit)
    num_total = np.bincount(node, minlength=num_nodes)
    num_success = np.bincount(node[is_success[trajectory]], minlength=num_nodes)
    return num_total, num_success
