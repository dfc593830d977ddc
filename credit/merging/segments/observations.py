"""Observations of states, and which of them are of one state for certain.

The trajectories of a group start from one state, and the same actions lead from one state to one
state, where the admissible actions and the rewards do not contradict. Such observations form an
equivalence class. What the observations of one class differ in is not what their state is.
"""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.steps.arrays import Bools, Ints, factorise, factorise_pairs
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes

_REWARDS = 32
"""More different rewards than these are taken for a measurement: they do not tell states apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observations:
    """Every observation of a state: before each step, then after the last step of each failure."""

    node: Ints
    """[n] the node of the text seen."""
    equivalence: Ints
    """[n] the equivalence class: equal where the state was the same for certain."""
    group: Ints
    """[n] the group."""
    index: Ints
    """[n] steps taken before."""
    trajectory: Ints
    """[n] the trajectory."""
    action: Ints
    """[n] code of the action that was taken there; -1 after the last one."""
    is_valid: Bools
    """[n] whether the environment called that action valid."""
    outcome: Ints
    """[n] equal in a group where the action had the same reward, was as valid, and led to a state
    with the same admissible actions, or to the goal."""

    def following(self) -> Ints:
        """Return [n] the next observation of the trajectory; -1 after the last one."""
        order = np.lexsort((self.index, self.trajectory))
        goes_on = self.trajectory[order[1:]] == self.trajectory[order[:-1]]
        following = np.full(len(order), -1)
        following[order[:-1][goes_on]] = order[1:][goes_on]
        return following


def observe(steps: Steps, nodes: Nodes, signature_of_node: Ints) -> Observations:
    """Return all observations of some trajectories.

    Args:
        steps: Complete trajectories, sorted.
        nodes: Of their texts.
        signature_of_node: [num_nodes] what the guard knows; it splits classes.
    """
    last = steps.trajectory_start[1:] - 1
    trajectory = np.repeat(np.arange(len(last)), np.diff(steps.trajectory_start))
    # From `UNKNOWN`, which is -1, signatures become codes from 0.
    signature = signature_of_node - UNKNOWN
    failures = last[~steps.is_success[last]]
    node = np.concatenate([nodes.state_of_step, nodes.target_of_step[failures]])
    index = np.arange(len(steps.row)) - steps.trajectory_start[trajectory]
    outcome = _pair(
        _pair(_rewards(steps), signature[nodes.target_of_step]),
        2 * steps.is_valid + (nodes.text_of_node[nodes.target_of_step] < 0),
    )
    none = np.full(len(failures), -1)
    return Observations(
        node=node,
        equivalence=_pair(_classes(steps, nodes, signature, failures), signature[node]),
        group=np.concatenate([nodes.group_of_step, nodes.group_of_step[failures]]),
        index=np.concatenate([index, index[failures] + 1]),
        trajectory=np.concatenate([trajectory, trajectory[failures]]),
        action=np.concatenate([steps.action, none]),
        is_valid=np.concatenate([steps.is_valid, none > 0]),
        outcome=np.concatenate([outcome, none]),
    )


def _classes(steps: Steps, nodes: Nodes, signature: Ints, failures: Ints) -> Ints:
    """Return [n] the class of each observation: the first state, and all actions since."""
    first = steps.trajectory_start[:-1]
    length = np.diff(steps.trajectory_start)
    edge = _pair(steps.action, _pair(signature[nodes.target_of_step], _rewards(steps)))
    before = np.zeros(len(steps.row), np.int64)
    after = np.zeros(len(steps.row), np.int64)
    active = np.arange(len(first))
    current = _pair(nodes.group_of_step[first], signature[nodes.state_of_step[first]])
    base, width = 0, int(current.max(initial=-1)) + 1
    for depth in range(int(length.max(initial=0))):
        step = first[active] + depth
        before[step] = current + base
        base += width
        current = _pair(current, edge[step])
        after[step] = current + base
        width = int(current.max(initial=-1)) + 1
        goes_on = length[active] > depth + 1
        active, current = active[goes_on], current[goes_on]
    return np.concatenate([before, after[failures]])


def _rewards(steps: Steps) -> Ints:
    """Return [num_steps] a code of the reward; of a reward that is never the same, nothing."""
    code, distinct = factorise(steps.reward.view(np.int64))
    return code if len(distinct) <= _REWARDS else np.zeros_like(code)


def _pair(one: Ints, other: Ints) -> Ints:
    """Return a number for each pair, from 0 in order of first appearance."""
    return factorise_pairs(one, other)[0]
