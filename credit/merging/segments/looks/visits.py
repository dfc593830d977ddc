"""Visits of states, and which of them are of one state for certain.

The trajectories of a group start from one state; the same actions lead from one state to one
state, where the admissible actions and the rewards do not contradict; an invalid action does not
leave a state (`invalid.py` asks whether that is so). Each such class of visits is several looks at
one state.
"""

from dataclasses import dataclass, replace

import numpy as np

from graphcredit.credit.merging.admissible import UNKNOWN
from graphcredit.credit.steps.arrays import Bools, Ints, factorise, factorise_pairs
from graphcredit.credit.steps.complete import Steps
from graphcredit.credit.steps.nodes import Nodes

_REWARDS = 32
"""More different rewards than these are taken for a measurement: they do not tell states apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Visits:
    """Every look at a state: before each step, then after the last step of each failure."""

    node: Ints
    """[num_visits] the node of the text seen."""
    certain: Ints
    """[num_visits] a class: equal where the state was the same for certain."""
    group: Ints
    """[num_visits] the group."""
    index: Ints
    """[num_visits] steps taken before."""
    walked: Ints
    """[num_visits] the same, if actions that were called invalid may leave a state, too."""
    trajectory: Ints
    """[num_visits] the trajectory."""
    taken: Ints
    """[num_visits] code of the action that was taken there; -1 after the last one."""
    is_valid: Bools
    """[num_visits] whether the environment called that action valid."""
    outcome: Ints
    """[num_visits] equal in a group where the action had the same reward, was as valid, and led to
    a state with the same admissible actions, or to the goal."""
    succeeds: Bools
    """[num_visits] whether the trajectory accomplished its task."""

    @property
    def action(self) -> Ints:
        """[num_visits] code of the valid action that was taken there; -1 where there was none."""
        return np.where(self.is_valid, self.taken, -1)

    @property
    def following(self) -> Ints:
        """[num_visits] the next visit of the trajectory; -1 after the last one."""
        order = np.lexsort((self.index, self.trajectory))
        goes_on = self.trajectory[order[1:]] == self.trajectory[order[:-1]]
        found = np.full(len(order), -1)
        found[order[:-1][goes_on]] = order[1:][goes_on]
        return found

    def if_invalid_actions_move(self) -> "Visits":
        """Return the visits with classes in which no invalid action is trusted to do nothing."""
        return replace(self, certain=self.walked)

    def if_alike_is_one(self, rest: Ints) -> "Visits":
        """Return the visits with classes by what was left of the look before, and what was done.

        They are likely of one state, if not for certain: what was left may not tell all.

        Args:
            rest: [num_visits] equal where the texts are the same without noise.
        """
        follows = np.flatnonzero(self.following >= 0)
        before = _pair(_pair(self.group, rest), _pair(self.taken + 1, self.outcome + 1))
        alike = self.certain.copy()
        alike[self.following[follows]] = int(alike.max(initial=-1)) + 1 + before[follows]
        return replace(self, certain=factorise(alike)[0])


def visits_of(steps: Steps, nodes: Nodes, signature_of_node: Ints) -> Visits:
    """Return all visits of some trajectories.

    Args:
        steps: Complete trajectories, sorted.
        nodes: Of their texts.
        signature_of_node: [num_nodes] what the guard knows; it splits classes.
    """
    last = steps.trajectory_start[1:] - 1
    trajectory = np.repeat(np.arange(len(last)), np.diff(steps.trajectory_start))
    # From `UNKNOWN`, which is -1, signatures become codes from 0.
    signature = signature_of_node - UNKNOWN
    # A failure's last step leads to one more visit.
    failures = last[~steps.is_success[last]]
    node = np.concatenate([nodes.state_of_step, nodes.target_of_step[failures]])
    index = np.arange(len(steps.row)) - steps.trajectory_start[trajectory]
    outcome = _pair(
        _pair(_rewards(steps), signature[nodes.target_of_step]),
        2 * steps.is_valid + (nodes.text_of_node[nodes.target_of_step] < 0),
    )
    none = np.full(len(failures), -1)
    # The guard has the last word: what was called invalid may have changed what is admissible.
    certain, walked = (
        _pair(_classes(steps, nodes, signature, failures, is_move), signature[node])
        for is_move in (steps.is_valid, np.ones(len(steps.row), np.bool_))
    )
    return Visits(
        node=node,
        certain=certain,
        walked=walked,
        group=np.concatenate([nodes.group_of_step, nodes.group_of_step[failures]]),
        index=np.concatenate([index, index[failures] + 1]),
        trajectory=np.concatenate([trajectory, trajectory[failures]]),
        taken=np.concatenate([steps.action, none]),
        is_valid=np.concatenate([steps.is_valid, none > 0]),
        outcome=np.concatenate([outcome, none]),
        succeeds=np.concatenate(
            [steps.is_success[last][trajectory], np.zeros(len(failures), np.bool_)]
        ),
    )


def _classes(steps: Steps, nodes: Nodes, signature: Ints, failures: Ints, is_move: Bools) -> Ints:
    """Return [num_visits] the class of each visit.

    Args:
        steps: Complete trajectories, sorted.
        nodes: Of their texts.
        signature: [num_nodes] codes of what the guard knows.
        failures: The last steps of failures.
        is_move: [num_steps] whether a step may leave its state.
    """
    first = steps.trajectory_start[:-1]
    trajectory = np.repeat(np.arange(len(first)), np.diff(steps.trajectory_start))
    # A trajectory of m moves is in m + 1 places, one after the other, so each trajectory before
    # adds one to the count.
    moves_before = np.concatenate(([0], np.cumsum(is_move)))
    place = moves_before[:-1] + trajectory
    class_of_place = _prefix_classes(
        move_start=moves_before[steps.trajectory_start],
        first=_pair(nodes.group_of_step[first], signature[nodes.state_of_step[first]]),
        action=steps.action[is_move],
        outcome=_pair(signature[nodes.target_of_step], _rewards(steps))[is_move],
    )
    found: Ints = class_of_place[np.concatenate([place, place[failures] + is_move[failures]])]
    return found


def _rewards(steps: Steps) -> Ints:
    """Return [num_steps] a code of the reward; of a reward that is never the same, nothing."""
    code, distinct = factorise(steps.reward.view(np.int64))
    return code if len(distinct) <= _REWARDS else np.zeros_like(code)


def _prefix_classes(*, move_start: Ints, first: Ints, action: Ints, outcome: Ints) -> Ints:
    """Number the places of trajectories: equal for equal first states and actions up to there.

    Args:
        move_start: [num_trajectories + 1] first move of each trajectory.
        first: [num_trajectories] equal for equal first states.
        action: [num_moves] what was done.
        outcome: [num_moves] what is known of the state after it; it must be equal, too.

    Returns:
        [num_moves + num_trajectories] a number for the place before each move of a trajectory and
        one for its last place, trajectory by trajectory.
    """
    length = np.diff(move_start)
    start = move_start[:-1] + np.arange(len(length))
    label = np.zeros(len(action) + len(length), np.int64)
    edge = _pair(action, outcome)
    active = np.arange(len(length))
    current, fresh = _pair(first, first), 0
    for depth in range(int(length.max(initial=-1)) + 1):
        label[start[active] + depth] = current + fresh
        fresh += int(current.max(initial=-1)) + 1
        goes_on = length[active] > depth
        active, current = active[goes_on], current[goes_on]
        current = _pair(current, edge[move_start[active] + depth])
    return label


def _pair(one: Ints, other: Ints) -> Ints:
    """Return a number for each pair, from 0 in order of first appearance."""
    return factorise_pairs(one, other)[0]
