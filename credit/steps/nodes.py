"""From texts to nodes: which states of a group are one node of its graph."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.steps.arrays import (
    Bools,
    Ints,
    distinct_pairs,
    factorise_pairs,
    starts_of_runs,
)
from graphcredit.credit.steps.complete import Steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Nodes:
    """The nodes of many groups; those of a group are consecutive, its goal comes last."""

    state_of_step: Ints
    """[num_steps] node each step leaves."""
    target_of_step: Ints
    """[num_steps] node each step leads to."""
    group_of_step: Ints
    """[num_steps] groups in the order of the steps."""
    node_start: Ints
    """[num_groups + 1] first node of each group."""
    goal_of_group: Ints
    """[num_groups] the goal; -1 in a group without success."""
    text_of_node: Ints
    """[num_nodes] code of the state's text, the first seen there; -1 at a goal."""

    num_texts: Ints
    """[num_nodes] distinct texts of the state; 1 at a goal."""

    @property
    def group_of_node(self) -> Ints:
        """[num_nodes] the group a node belongs to."""
        return np.repeat(np.arange(len(self.goal_of_group)), np.diff(self.node_start))


def exact_nodes(steps: Steps) -> Nodes:
    """Make one node of each distinct text of a group, in order of first appearance.

    The last step of a success leads to the goal, which is a node of its own: the text after that
    step makes no node, so a text that also occurs elsewhere never becomes a goal by accident.

    Args:
        steps: Complete trajectories, sorted by group, trajectory and step.
    """
    group_start = starts_of_runs(steps.task)
    num_groups = len(group_start) - 1
    group_of_step = np.repeat(np.arange(num_groups), np.diff(group_start))
    last = steps.trajectory_start[1:] - 1
    is_success = steps.is_success[last]

    visits = _Visits.lay_out(steps, ~is_success)
    group_of_visit = group_of_step[visits.step]
    node_of_visit, group_of_node, text_of_node = factorise_pairs(group_of_visit, visits.text)

    has_goal = np.zeros(num_groups, bool)
    has_goal[group_of_step[last[is_success]]] = True
    goals_before = np.concatenate(([0], np.cumsum(has_goal)))
    num_texts_of_group = np.bincount(group_of_node, minlength=num_groups)
    node_start = np.concatenate(([0], np.cumsum(num_texts_of_group))) + goals_before
    goal_of_group = np.where(has_goal, node_start[1:] - 1, -1)

    node_of_visit = node_of_visit + goals_before[group_of_visit]
    state_of_step = node_of_visit[visits.visit_of_step]
    target_of_step = node_of_visit[np.minimum(visits.visit_of_step + 1, len(visits.step) - 1)]
    target_of_step[last[is_success]] = goal_of_group[group_of_step[last[is_success]]]
    return Nodes(
        state_of_step=state_of_step,
        target_of_step=target_of_step,
        group_of_step=group_of_step,
        node_start=node_start,
        goal_of_group=goal_of_group,
        text_of_node=np.insert(text_of_node, np.cumsum(num_texts_of_group)[has_goal], np.int64(-1)),
        num_texts=np.ones(int(node_start[-1]), np.int64),
    )


def merge_nodes(nodes: Nodes, label: Ints) -> Nodes:
    """Make one node of all nodes with one label.

    The first of them gives its text and its place in the order.

    Args:
        nodes: The nodes as they are.
        label: [num_nodes] any integers; not the same in two groups, and each goal has its own.
    """
    _, first, of_label = np.unique(label, return_index=True, return_inverse=True)
    representative = first[of_label]
    is_kept = representative == np.arange(len(label))
    number = (np.cumsum(is_kept) - 1)[representative]
    has_goal = nodes.goal_of_group >= 0
    goal_of_group = nodes.goal_of_group.copy()
    goal_of_group[has_goal] = number[nodes.goal_of_group[has_goal]]
    return Nodes(
        state_of_step=number[nodes.state_of_step],
        target_of_step=number[nodes.target_of_step],
        group_of_step=nodes.group_of_step,
        node_start=np.concatenate(([0], np.cumsum(is_kept)))[nodes.node_start],
        goal_of_group=goal_of_group,
        text_of_node=nodes.text_of_node[is_kept],
        num_texts=np.bincount(number, nodes.num_texts, int(is_kept.sum())).astype(np.int64),
    )


def count_contradictions(nodes: Nodes, action: Ints) -> int:
    """Return how many (node, action) lead to more than one node.

    Args:
        nodes: The nodes of the steps.
        action: [num_steps] code of each step's action.
    """
    choice, _, _ = factorise_pairs(nodes.state_of_step, action)
    of_outcome, _ = distinct_pairs(choice, nodes.target_of_step)
    return int((np.bincount(of_outcome) > 1).sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Visits:
    """The states of all trajectories: before every step, and after the last one of a failure."""

    step: Ints
    """[num_visits] the step that starts, or that ended, there."""
    text: Ints
    """[num_visits] code of the text."""
    visit_of_step: Ints
    """[num_steps] the visit each step starts from."""

    @classmethod
    def lay_out(cls, steps: Steps, has_last_visit: Bools) -> "_Visits":
        last = steps.trajectory_start[1:] - 1
        repeats = np.ones(len(steps.row), np.int64)
        repeats[last[has_last_visit]] = 2
        step = np.repeat(np.arange(len(steps.row)), repeats)
        visit_of_step = np.cumsum(repeats) - repeats
        text = steps.state[step]
        ends = last[has_last_visit]
        text[visit_of_step[ends] + 1] = steps.next_state[ends]
        return cls(step=step, text=text, visit_of_step=visit_of_step)
