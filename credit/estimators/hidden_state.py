"""Hidden state: the share of an action's outcome that was decided before its state.

A graph of states takes it that where an action leads depends on its state alone. If states hide
something, two visits of one state that look alike are two places. Then an action leads where it led
after a like history more often than after any. In a world of chance it does not. For a step whose
action was taken in its state by other trajectories, too:

    any     share of those others that led where the step led
    like    the same of those of them whose last steps are the same for longest
    agreed  number of choices, a state and an action, that several trajectories made and that always
            led to one state, at states that are no corridor: routine tells nothing
    share   (2 + Σ (like - any)) / (4 + agreed + Σ (1 - any))
    scores  Σ (r - others)² / (Σ (R - mean)² + 1/2)
            others is the mean r of other trajectories' steps with the same state, action and next
            state that are also last, or also not; a step without such others adds 0
    η       the greater of share and scores, and at most 1

So the share of contradictions that history resolves is a half before anything was seen, and each
choice without a contradiction says that nothing is hidden. Lengths of history are 1, 2, 4, … steps.
"""

from collections.abc import Iterator

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.steps.arrays import Bools, Floats, Ints, factorise_pairs, sum_per_run

_RESOLVED, _CONTRADICTED = 2.0, 4.0
"""What counts as if it had been seen in every group."""


_DOUBT = 0.5
"""Of the variance of returns: as if one trajectory more were far from the mean."""


def hidden_share(batch: StepBatch, reward: Floats, is_corridor: Bools) -> Floats:
    """Return the share of contradictions that history resolves, from 0 to 1. [num_groups].

    Args:
        batch: The steps.
        reward: [num_steps] what each step earned.
        is_corridor: [num_nodes] see `outlook.py`.
    """
    choice, _, _ = factorise_pairs(batch.state_of_step, batch.action_of_step)
    outcome, choice_of_outcome, _ = factorise_pairs(choice, batch.target_of_step)
    is_agreed = np.bincount(choice_of_outcome) == 1
    resolved, contradicted = _contradictions(batch, np.flatnonzero(~is_agreed[choice]), outcome)
    resolved += _RESOLVED
    contradicted += _CONTRADICTED + _num_repeated(batch, choice, is_agreed, is_corridor)
    of_rewards = _reward_surprise(batch, outcome, reward)
    share: Floats = np.clip(np.maximum(resolved / contradicted, of_rewards), 0.0, 1.0)
    return share


def _reward_surprise(batch: StepBatch, outcome: Ints, reward: Floats) -> Floats:
    """Return [num_groups] the share of the returns' variance that no state foretells.

    It is the squared distance of rewards from those of other trajectories' like steps.

    Args:
        batch: The steps.
        outcome: [num_steps] code of state, action and where it led.
        reward: [num_steps].
    """
    is_last = np.zeros(batch.num_steps, np.int64)
    is_last[batch.trajectory_start[1:] - 1] = 1  # a limit may have ended it, which is no surprise
    outcome, _, _ = factorise_pairs(outcome, is_last)
    own, _, _ = factorise_pairs(outcome, batch.trajectory_of_step)
    number = _of_others(outcome, batch.trajectory_of_step)
    total = np.bincount(outcome, reward)[outcome] - np.bincount(own, reward)[own]
    mean = np.divide(total, number, out=reward.copy(), where=number > 0)
    returns, group = sum_per_run(reward, batch.trajectory_start), batch.group_of_trajectory
    size = np.maximum(np.bincount(group, minlength=batch.num_groups), 1)
    middle = np.bincount(group, returns, batch.num_groups) / size
    variance = np.bincount(group, (returns - middle[group]) ** 2, batch.num_groups)
    surprise = np.bincount(batch.group_of_step, (reward - mean) ** 2, batch.num_groups)
    return surprise / (variance + _DOUBT)


def _contradictions(batch: StepBatch, steps: Ints, outcome: Ints) -> tuple[Floats, Floats]:
    """Sum like - any, and 1 - any, over some steps. [num_groups] each.

    Args:
        batch: All steps.
        steps: [n] all steps of the choices that did not always lead to one state.
        outcome: [num_steps] where each step led from its choice.
    """
    num_groups = batch.num_groups
    if not len(steps):
        return np.zeros(num_groups), np.zeros(num_groups)
    choice, _, _ = factorise_pairs(batch.state_of_step[steps], batch.action_of_step[steps])
    share = _agreement(batch, steps, choice, outcome)
    like = any_other = np.where(np.isnan(share), 1.0, share)
    for history in _histories(batch, outcome):
        context, _, _ = factorise_pairs(choice, history[steps])
        alike = _agreement(batch, steps, context, outcome)
        if np.isnan(alike).all():
            break
        like = np.where(np.isnan(alike), like, alike)
    group = batch.group_of_step[steps]
    resolved, contradicted = (
        np.bincount(group, share, num_groups).astype(np.float64)
        for share in (like - any_other, 1.0 - any_other)
    )
    return resolved, contradicted


def _agreement(batch: StepBatch, steps: Ints, context: Ints, outcome: Ints) -> Floats:
    """Return the share of steps of other trajectories in one's context that led where it led.

    Args:
        batch: All steps.
        steps: [n] the steps that are compared.
        context: [n] what must be the same.
        outcome: [num_steps] where each step led.

    Returns:
        [n]; NaN where no other trajectory has a step in the context.
    """
    trajectory = batch.trajectory_of_step[steps]
    both, _, _ = factorise_pairs(context, outcome[steps])
    others, agreeing = (_of_others(code, trajectory) for code in (context, both))
    return np.divide(agreeing, others, out=np.full(len(steps), np.nan), where=others > 0)


def _of_others(code: Ints, trajectory: Ints) -> Ints:
    """Count the steps of other trajectories with the same code."""
    own, _, _ = factorise_pairs(code, trajectory)
    return np.bincount(code)[code] - np.bincount(own)[own]


def _num_repeated(batch: StepBatch, choice: Ints, is_agreed: Bools, is_corridor: Bools) -> Floats:
    """Return how many choices that always led to one state several trajectories made.

    Args:
        batch: The steps.
        choice: [num_steps].
        is_agreed: [num_choices] whether it always led to one state.
        is_corridor: [num_nodes] states whose choices do not count.

    Returns:
        [num_groups].
    """
    _, choice_of_player, _ = factorise_pairs(choice, batch.trajectory_of_step)
    num_players = np.bincount(choice_of_player, minlength=len(is_agreed))
    group = np.empty(len(is_agreed), np.int64)
    group[choice] = batch.group_of_step
    counts = is_agreed & (num_players > 1)
    counts[choice[is_corridor[batch.state_of_step]]] = False
    agreed = np.bincount(group[counts], minlength=batch.num_groups)
    return agreed.astype(np.float64)


def _histories(batch: StepBatch, outcome: Ints) -> Iterator[Ints]:
    """Yield [num_steps] codes of the last 1, 2, 4, … transitions before each step."""
    time = np.arange(batch.num_steps) - batch.trajectory_start[batch.trajectory_of_step]
    code, length = _earlier(outcome + 1, 1, time), 1
    while length <= time.max(initial=0):
        yield code
        code, _, _ = factorise_pairs(code, _earlier(code + 1, length, time))
        length *= 2


def _earlier(code: Ints, length: int, time: Ints) -> Ints:
    """Return the code of so many steps before, which is 0 before a trajectory began."""
    earlier = np.roll(code, length)
    earlier[time < length] = 0
    return earlier
