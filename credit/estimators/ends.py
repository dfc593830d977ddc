"""What the ends of episodes are worth, for estimators that measure the way to the goal.

    worth(e) = 1 at the goal, 0 elsewhere                       success, as published
    worth(e) = the mean R' of the trajectories that ended at e  returns
    best(s)  = max over the ends e of worth(e) · γ^{d(s, e)}    0 where there is none

R' is the return in units of the group (`earnings.py`), so a losing end of a log whose returns are 0
and 1 is worth nothing, and both are the same there. With returns every end is a goal that is worth
what was scored at it: the least of a group is worth nothing, and a good end that is near is as good
as a better one that is far. It says how good the episodes were that ended there, not where on their
way they earned it.
"""

from typing import Literal, TypeAlias

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.steps.arrays import Floats

Worth: TypeAlias = Literal["success", "returns"]


def best_end(batch: StepBatch, weights: Floats, discount: float) -> Floats:
    """Return [num_nodes] best(s) by returns.

    Args:
        batch: The steps.
        weights: [num_transitions] how far each leads; infinite where it is no way.
        discount: γ, from 0 to 1.
    """
    graph, is_way = batch.graph, np.isfinite(weights)
    source, target = graph.source[is_way], graph.target[is_way]
    kept = np.power(discount, weights[is_way])
    best = _worth_of_ends(batch)
    while True:
        before = best.copy()
        np.maximum.at(best, source, kept * before[target])
        if np.array_equal(best, before):
            return best


def _worth_of_ends(batch: StepBatch) -> Floats:
    """Return [num_nodes] worth(e) by returns."""
    end = batch.target_of_step[batch.trajectory_start[1:] - 1]
    times = np.bincount(end, minlength=batch.num_nodes)
    total = np.bincount(end, Earnings.of(batch).of_trajectory, batch.num_nodes)
    return np.divide(total, times, out=np.zeros(batch.num_nodes), where=times > 0)
