"""The chance to reach a goal, discounted, of every node of many groups at once.

    V(goal) = 1        V(u) = Σ over the edges (u, v) of p(u, v) · V(v)

p holds the discount, so that the p of a node add up to 1 at most. Sweeps begin at 0, and no sum of
them falls: they end where V no longer changes, so V does not depend on which groups are beside it.
"""

import numpy as np

from graphcredit.credit.steps.arrays import Floats, Ints


def goal_chance(
    *, source: Ints, target: Ints, chance: Floats, num_nodes: int, goals: Ints
) -> Floats:
    """Return V of every node; 0 without a path to a goal. [num_nodes].

    Args:
        source: [num_edges] node each edge leaves, never a goal.
        target: [num_edges] node it enters.
        chance: [num_edges] p, at least 0.
        num_nodes: Nodes of all groups together.
        goals: [num_goals] the goals.
    """
    value = np.zeros(num_nodes)
    while True:
        before = value
        value = np.bincount(source, chance * before[target], num_nodes).astype(np.float64)
        value[goals] = 1.0
        if np.array_equal(value, before):
            return value
