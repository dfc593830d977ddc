"""How far the graph is believed, and how far what followed in the trajectory itself.

**Outcome.** By the graph, what followed a step says nothing more once its state, action and next
state are known. If it does say more, the graph hides something. So the steps of each state are
compared by what followed beyond the graph's expectation, an analysis of variance over the actions:

    B(s) = Σ (mean of the action - mean of the state)²     over the visits of s, a trajectory once
    W    = Σ (visit - mean of the action)²                 an action, at states with two actions
    v    = (W + 2 (var + 1/4 / (m + 1))) / (its degrees of freedom + 2)          of the group
    F(s) = (B(s) / v + 4) / (number of actions - 1 + 4)
    w(s) = F² / (F² + 5)                                   not less than α

var is that of the returns of the group's m trajectories. F is 1 before anything was seen.

**Alone.** α is the square of the share of the group's steps whose state no other trajectory left:
where trajectories never meet, the outcome is all there is. Then each step of a trajectory is given
its whole outcome, which few of them decided. The more such steps, the less each of them says:

    ρ(s) = 1 / (1 + (L / 20)²), not less than 1/4          at a state that one trajectory left
    ρ(s) = 1                                               elsewhere

L is the group's mean number of such steps in a trajectory.
"""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.estimators.outlook import Places
from graphcredit.credit.steps.arrays import Floats, Ints, factorise_pairs

_PRIOR_OF_VARIANCE, _PRIOR_OF_RATIO = 2.0, 4.0
"""Degrees of freedom that count as if they had been seen."""

_HALF = 5.0
"""F² at which the outcome counts half."""

_MANY, _LEAST = 20.0, 0.25
"""Steps alone at which one of them counts half, and how little it counts at least."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """Weights between the graph and the outcome."""

    outcome: Floats
    """[num_nodes] w(s)."""
    alone: Floats
    """[num_groups] α."""
    reliability: Floats
    """[num_nodes] ρ(s)."""

    @classmethod
    def of(cls, batch: StepBatch, earned: Earnings, places: Places, beyond: Floats) -> "Trust":
        """Return the weights of a batch.

        Args:
            batch: The steps.
            earned: Their rewards.
            places: Its states.
            beyond: [num_steps] what followed each step, beyond what the graph expected.
        """
        group, is_alone = batch.group_of_node, places.is_alone
        num_alone = np.bincount(
            batch.group_of_step, is_alone[batch.state_of_step], batch.num_groups
        )
        num_steps, num_trajectories = (
            np.maximum(np.bincount(group_of, minlength=batch.num_groups), 1)
            for group_of in (batch.group_of_step, batch.group_of_trajectory)
        )
        alone = (num_alone / num_steps) ** 2
        of_many = 1.0 / (1.0 + (num_alone / num_trajectories / _MANY) ** 2)
        ratio = _variance_ratio(batch, earned, beyond)
        return cls(
            outcome=np.maximum(ratio**2 / (ratio**2 + _HALF), alone[group]),
            alone=alone,
            reliability=np.where(is_alone, np.maximum(of_many, _LEAST)[group], 1.0),
        )


def _variance_ratio(batch: StepBatch, earned: Earnings, beyond: Floats) -> Floats:
    """Return [num_nodes] F(s)."""
    action, state_of_action, _ = factorise_pairs(batch.state_of_step, batch.action_of_step)
    visit, action_of_visit, _ = factorise_pairs(action, batch.trajectory_of_step)
    value = np.bincount(visit, beyond) / np.bincount(visit)
    state = state_of_action[action_of_visit]
    of_action, of_state = _means(action_of_visit, value), _means(state, value)
    num_actions = np.bincount(state_of_action, minlength=batch.num_nodes)
    num_visits = np.bincount(state, minlength=batch.num_nodes)
    is_choice = num_actions > 1
    between = np.bincount(state, (of_action - of_state) ** 2, batch.num_nodes)
    within = np.bincount(state, (value - of_action) ** 2, batch.num_nodes)
    group = batch.group_of_node
    unexplained, freedom = (
        np.bincount(group, np.where(is_choice, each, 0.0), batch.num_groups)
        for each in (within, num_visits - num_actions)
    )
    num_trajectories = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
    prior = earned.variance(batch) + 0.25 / (num_trajectories + 1.0)
    variance = (unexplained + _PRIOR_OF_VARIANCE * prior) / (freedom + _PRIOR_OF_VARIANCE)
    ratio = np.where(is_choice, between, 0.0) / variance[group] + _PRIOR_OF_RATIO
    return ratio / (np.where(is_choice, num_actions - 1, 0) + _PRIOR_OF_RATIO)


def _means(code: Ints, values: Floats) -> Floats:
    """Return [n] the mean of the values with the code of each."""
    number = np.bincount(code)
    return (np.bincount(code, values) / np.maximum(number, 1))[code]
