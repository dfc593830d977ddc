"""The share of its cost that a step turned into distance.

    d(s)     = least of  c(s, a) + d(s')          over the steps a from s to s'
                         c(t, a) / alike + d(t')  over the imagined actions a of s
                         c̄ C / N(s)              in a group without a goal
    progress = (d(s_t) - d(s_{t+1})) / c_t, not above 1 and not below -1

An imagined action does what it did in the one most alike state t, with chance alike, and otherwise
nothing; so it costs c / alike. A state is as good a place to search as it is new: from one with one
thing that nobody did, the search takes C steps of the group's mean cost c̄.

Imagined ways are used in a group if they leave what is known as it is: of the group's steps between
two states with a walked way to the goal, at least `AGREEMENT` must keep their progress within a
half. A short cut that does not exist makes most steps look idle, and fails.
"""

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.graph.distances import DistanceFinder
from graphcredit.credit.inputs.analogies.untried_actions import Analogies
from graphcredit.credit.steps.arrays import Bools, Floats, Ints

SEARCH = 30.0
"""C: steps that it takes to find the goal from a state with one thing that nobody did."""

AGREEMENT = 0.7
"""Least share of a group's known steps whose progress imagination must not change."""

_CHANGE = 0.5
"""By how much a step's progress is another."""


def progress(batch: StepBatch, analogies: Analogies) -> Floats:
    """Return the progress of each step. [num_steps].

    It is 0 where no way leads to the goal, and -1 where a step leaves the last one.
    """
    nothing = np.empty(0, np.int64)
    walked = _distance(batch, analogies, nothing)
    gain = _gain(batch, walked)
    if len(analogies.source):
        every = np.arange(len(analogies.source))
        imagined = _gain(batch, _distance(batch, analogies, every))
        is_known = np.isfinite(walked[batch.state_of_step]) & np.isfinite(
            walked[batch.target_of_step]
        )
        proves_right = _proves_right(batch, np.abs(imagined - gain) < _CHANGE, is_known)
        gain = np.where(proves_right[batch.group_of_step], imagined, gain)
    return gain


def _distance(batch: StepBatch, analogies: Analogies, used: Ints) -> Floats:
    """Return [num_nodes] d, with some of the imagined transitions."""
    graph = batch.graph
    goals = batch.goal_of_group[batch.goal_of_group >= 0]
    exits = np.flatnonzero(analogies.novelty > 0)
    with np.errstate(over="ignore"):
        search = SEARCH * _mean_cost(batch)[batch.group_of_node[exits]] / analogies.novelty[exits]
    find = DistanceFinder(
        np.concatenate([graph.source, analogies.source[used]]),
        np.concatenate([graph.target, analogies.target[used]]),
        batch.num_nodes,
        np.concatenate([goals, exits]),
        np.concatenate([np.zeros(len(goals)), search]),
    )
    with np.errstate(over="ignore"):
        return find(np.concatenate([graph.cost, analogies.cost[used]]))


def _mean_cost(batch: StepBatch) -> Floats:
    """Return [num_groups] the mean cost of a step."""
    number = np.bincount(batch.group_of_step, minlength=batch.num_groups)
    share = batch.cost / number[batch.group_of_step]
    return np.bincount(batch.group_of_step, share, batch.num_groups).astype(np.float64)


def _gain(batch: StepBatch, distance: Floats) -> Floats:
    before, after = distance[batch.state_of_step], distance[batch.target_of_step]
    gain = np.subtract(before, after, out=np.zeros(batch.num_steps), where=np.isfinite(before))
    found: Floats = np.clip(gain, -batch.cost, batch.cost) / batch.cost
    return found


def _proves_right(batch: StepBatch, is_same: Bools, is_known: Bools) -> Bools:
    """Return [num_groups] whether imagination leaves what is known as it is."""
    known, same = (
        np.bincount(batch.group_of_step, counted, batch.num_groups)
        for counted in (is_known, is_known & is_same)
    )
    return (known > 0) & (same >= AGREEMENT * known)
