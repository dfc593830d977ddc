"""Reach: by how much a step changes what its episode still earns."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.estimators.hidden_state import hidden_share
from graphcredit.credit.estimators.outlook import Places
from graphcredit.credit.estimators.progress import progress
from graphcredit.credit.estimators.relative import Normalize
from graphcredit.credit.estimators.trust import Trust
from graphcredit.credit.inputs.analogies.untried_actions import Analogies
from graphcredit.credit.steps.arrays import (
    Floats,
    decayed_sums,
    discounted_returns,
    factorise_pairs,
)
from graphcredit.store.options import Positive

_FAR = 5
"""Steps after which what happens counts by the share of contradictions that history resolves."""

_NEW = 1 / 5
"""The most that A is for the new, in groups of any size."""

_ROUNDING = 1e-12
"""A credit below it is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """A step is worth what it adds to the return, under the group's own behaviour.

        V(s)     = (Σ (r + V(s')) + κ(s) e(s)) / (n(s) + κ(s))       an end leads to V = 0
        Q(s, a)  = the mean of r + V(s') over the group's steps with a in s
        outcome  = (1 - w(s_t)) (Q(s_t, a_t) + near) + w(s_t) Σ_{k≥0} r_{t+k}
        near     = Σ_{k≥1} λ_{t+1} … λ_{t+k} (r_{t+k} + V(s_{t+k+1}) - V(s_{t+k}))
        baseline = V(s_t) without the step                           what the others had from there
        A        = ρ(s_t) / sd · (outcome - baseline)
        value, q = V and Q as a reader wants them, in the log's returns
        progress = the share of its cost that the step turned into distance to the goal

    **Units.** r is the reward in units of the group, whose least return is 0 and whose greatest is
    1 (`earnings.py`): A is the same if all returns are multiplied, or shifted at their end. Where
    all returns are equal, a success is 1.

    **Doubt.** Few rollouts know V badly. κ(s) more steps are supposed to have left s for something
    unknown, which makes the return e(s) + what was earned before s. κ(s) is κ, and 0 where the
    steps of a state all led to one other state and none ended, or one rollout alone visited it
    (`outlook.py`). So routine costs no credit, however long it is. In A, e(s) is the mean return
    less the variance of the returns: a little pessimism, which is 0 where returns agree. In
    `value` and `q` it is the mean return, so that they are calibrated: where outcomes are binary,
    they are chances to win.

    **How far the graph is believed** (`trust.py`, `hidden_state.py`). w(s) is small where what
    followed an action is what the graph expects, and near 1 where it differs by action more than
    chance makes it, or where rollouts never meet: then the outcome counts, however late it
    comes. λ is 1 at a corridor and else η^(1/5); η is the share of contradictory transitions that
    their history explains, or of the returns' variance that no state foretells. ρ(s) takes credit
    off the steps of long ways on which a rollout was alone.

    **Without the step.** V of a state that was left once is what happened then, and by that the
    step would seem to change nothing. So the baseline leaves one step out that is worth Q, and has
    the doubt. At a corridor it is V. Where one rollout alone was, it is the mean return, less
    what was earned before the step, less (1 - α) of the variance.

    **Scale.** sd is the standard deviation of the group's returns, as in GRPO, with half a return
    of 0 and half of 1 beside them, so that it is never 0.

    **Nothing to tell.** Groups whose returns are all equal, and of one rollout, have A = 0 but
    for the new. A group whose rollouts never meet has GRPO's credit, scaled.

    **The new.** In a group that earned nothing, what is to be found lies behind the new. There e(s)
    in A is u(s), near = w = 0, ρ = 1, and one rollout alone is like several:

        u(s) = 1/5 sd N(s) / (1 + N(s))

    N(s) is how new s is: the untried actions of s, each the less the more often the group took it
    elsewhere; where the lists of admissible actions are missing or say nothing of their states,
    the words of s, likewise (`inputs/analogies/novelty.py`).

    **Two questions.** A is what to learn from: the gradient of the return is made of Q - V of the
    policy that played, not of progress towards the goal. Progress is what the step did on the
    shortest way, whoever took it (`progress.py`). It is no part of A. For the way, untried actions
    do what they did in the one most alike state, in groups where that leaves what was walked as it
    is; where nobody won, it leads to what is new.

    Where all returns are equal, `value` and `q` are chances of success.
    Source: this project; docs/research/credit-truth.md.
    """

    doubt: Positive = 1.0
    """κ: steps to the unknown that a state is given beside those that left it."""
    normalize: Normalize = "std"
    """Divide by sd, or not."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the credit and what it is made of, and the progress, each [num_steps].

        Raises:
            InputError: The batch was made without analogies.
        """
        analogies: Analogies = batch.input("analogies")
        earned = Earnings.of(batch)
        places = Places.of(batch, earned, doubt=self.doubt)
        unknown, mean = _unknown(batch, earned, analogies.novelty), _mean(batch, earned)
        learnt, read = places.values(batch, earned, unknown, mean)
        outcome, baseline, reliability = _compared(batch, earned, places, learnt)
        credit = (outcome - baseline) * reliability
        if self.normalize == "std":
            credit /= earned.deviation(batch)[batch.group_of_step]
        group = batch.group_of_step
        parts = {
            "value": earned.in_returns(read[batch.state_of_step], group),
            "q": earned.in_returns(_of_action(batch, _after(batch, earned, read)), group),
            "outcome": outcome,
            "baseline": baseline,
            "progress": progress(batch, analogies),
            "advantage": credit,
        }
        return {name: np.where(np.abs(part) > _ROUNDING, part, 0.0) for name, part in parts.items()}

    def value(self, batch: StepBatch) -> Floats:
        """Return `value` of each node, [num_nodes]; 0 where no step left."""
        earned = Earnings.of(batch)
        places = Places.of(batch, earned, doubt=self.doubt)
        (read,) = places.values(batch, earned, _mean(batch, earned))
        is_left = places.num_left > 0
        return np.where(is_left, earned.in_returns(read, batch.group_of_node), 0.0)


def _mean(batch: StepBatch, earned: Earnings) -> Floats:
    """Return [num_nodes] what the mean return leaves to earn from each."""
    return earned.mean(batch)[batch.group_of_node] - earned.before(batch)


def _unknown(batch: StepBatch, earned: Earnings, novelty: Floats) -> Floats:
    """Return [num_nodes] e(s) of A."""
    group = batch.group_of_node
    hope = np.where(earned.earned_nothing(batch), _NEW * earned.deviation(batch), 0.0)
    new = hope[group] * novelty / (1 + novelty)
    return _mean(batch, earned) - earned.variance(batch)[group] + new


def _compared(
    batch: StepBatch, earned: Earnings, places: Places, value: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the outcome and the baseline of each step, and ρ of its state. [num_steps] each."""
    state, group = batch.state_of_step, batch.group_of_step
    after = _after(batch, earned, value)
    of_action, followed = _of_action(batch, after), _followed(batch, earned)
    trust = Trust.of(batch, earned, places, followed - after)
    fade = hidden_share(batch, earned.of_step, places.is_corridor) ** (1 / _FAR)
    decay = np.where(places.is_corridor[state], 1.0, fade[group])
    gain = after - value[state]
    near = decayed_sums(gain, decay, batch.trajectory_start) - gain
    weight, is_new = trust.outcome[state], earned.earned_nothing(batch)[group]
    believed = (1.0 - weight) * (of_action + near) + weight * followed
    outcome = np.where(is_new, of_action, believed)
    steps = places.num_left + places.doubt
    others = (value * steps)[state] - of_action
    baseline = np.divide(others, steps[state] - 1.0, out=value[state], where=steps[state] > 1.0)
    baseline[places.is_corridor[state]] = value[state][places.is_corridor[state]]
    alone = earned.mean(batch) - (1.0 - trust.alone) * earned.variance(batch)
    is_alone = places.is_alone[state] & ~is_new
    baseline[is_alone] = (alone[group] - earned.before_step(batch))[is_alone]
    return outcome, baseline, np.where(is_new, 1.0, trust.reliability[state])


def _after(batch: StepBatch, earned: Earnings, value: Floats) -> Floats:
    """Return [num_steps] r + V(s')."""
    following = value[batch.target_of_step]
    following[batch.trajectory_start[1:] - 1] = 0.0
    return earned.of_step + following


def _of_action(batch: StepBatch, after: Floats) -> Floats:
    """Return [num_steps] Q(s, a)."""
    action, _, _ = factorise_pairs(batch.state_of_step, batch.action_of_step)
    return (np.bincount(action, after) / np.bincount(action))[action]


def _followed(batch: StepBatch, earned: Earnings) -> Floats:
    """Return [num_steps] what each step and those after it earned."""
    return discounted_returns(earned.of_step, batch.trajectory_start, 1.0)
