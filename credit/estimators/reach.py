"""Reach: by how much a step changes what its episode still earns."""

from dataclasses import dataclass

import numpy as np

from graphcredit.credit.estimators.batch import StepBatch
from graphcredit.credit.estimators.earnings import Earnings
from graphcredit.credit.estimators.hidden_state import hidden_share
from graphcredit.credit.estimators.outlook import (
    Unknown,
    horizon_of_group,
    outlook,
    value_of_nodes,
)
from graphcredit.credit.estimators.progress import progress
from graphcredit.credit.estimators.relative import Normalize
from graphcredit.credit.inputs.analogies.untried_actions import Analogies
from graphcredit.credit.steps.arrays import Floats
from graphcredit.store.options import Positive

_FAR = 5
"""Steps after which what happens counts by the share of contradictions that history resolves."""

_ROUNDING = 1e-12
"""A credit below it is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """A step is worth what it adds to the return, under the group's own behaviour.

        V_h(s)      = (Σ (r + V_{h-1}(s')) + κ (w + u(s)) h / H + κ e) / (n(s) + κ)   V_0 = 0
        Q_h(s, a)   = the mean of r + V_{h-1}(s') over the group's steps with a in s
        step reward = r_t + V_{h-1}(s_{t+1}) - V_h(s_t)
        value       = V_h(s_t) without the step       where it was, by the others
        q           = Q_h(s_t, a_t)                   what the action is worth there
        tail        = Σ_{k≥1} ((1 - η²) λ^k + η²) step reward_{t+k}       what followed
        A           = √H / sd · (q - value + tail)
        progress    = the share of its cost that the step turned into distance to the goal

    r is the reward in units of the group, whose least return is 0 and whose greatest is 1
    (`earnings.py`): so A is the same if all returns are multiplied, or shifted at their end. A cost
    for each step is no such shift: it takes more off longer episodes. Shaping by a potential that
    is 0 at the ends changes A through what the unknown earns alone. Where all returns are equal,
    success is 1. Where outcomes are binary, V is the chance of success.

    h is the number of steps that remain: H, the longest episode of the group, less t. The sum is
    over the n(s) steps of the graph that left s. κ is how many more steps are supposed to have left
    s for something unknown. It earns what the group's failures earned in the mean: e by their last
    step, and w before it if all H steps remain. So it earns nothing where failures have the least
    return, as where outcomes are binary. In a group that earned nothing, what is to be found lies
    behind the new, and w = e = 0; elsewhere u(s) = 0:

        u(s) = p N(s) / (1 + N(s))        p = 1/2 / (trajectories + 1)

    N(s) is how new s is: the untried actions of s, each the less the more often the group took it
    elsewhere; where the lists of admissible actions are missing or say nothing of their states,
    the words of s, likewise (`inputs/analogies/novelty.py`). η is the share of contradictory
    transitions that their history explains, or of the returns' variance that no state foretells
    (`hidden_state.py`), and λ = η^(1/5): small where states hide nothing, so that the graph is
    believed; near 1 where they do, so that the outcome is, however late it comes.

    **Without the step.** V of a state that was left once is what happened then, and by that the
    step would seem to change nothing. So value leaves one step out that is worth Q_h(s_t, a_t):
    the action is compared with the other steps, and the unknown.

    **Two questions.** A is what to learn from: the gradient of the return is made of Q - V of the
    policy that played, not of progress towards the goal. Progress is what the step did on the
    shortest way, whoever took it (`progress.py`). It is no part of A. For the way, untried actions
    do what they did in the one most alike state, in groups where that leaves what was walked as it
    is; where nobody won, it leads to what is new.

    **Doubt.** Few rollouts know V badly: a state that was left once is worth what happened once.
    κ takes that back, and gives a chain of new states rising values instead of one jump.

    **Scale.** sd is the standard deviation of the group's returns, as in GRPO, with half a return
    of 0 and half of 1 beside them, so that it is never 0: a group without a success says little.
    The steps of an episode share its outcome, so each has about 1/H of the variance: √H takes that
    back. A step whose state was left once has credit too. Progress is between -1 and 1.

    **Degenerate cases.** A group whose states are all equally new and that earned nothing, credits
    time alone in A. Nothing is balanced: V counts κ steps that nobody took. A does not read costs:
    the horizon counts steps. With earlier iterations in the graph, V, N and the ways are of their
    steps too; Q, H, sd, units and λ are of the group's. Source: this project;
    docs/research/credit-truth.md.
    """

    doubt: Positive = 0.7
    """κ: steps to the unknown that each state is given beside those that left it."""
    normalize: Normalize = "std"
    """Multiply by √H / sd, or not."""

    def assign(self, batch: StepBatch) -> dict[str, Floats]:
        """Return the credit and what it is made of, and the progress, each [num_steps].

        Raises:
            InputError: The batch was made without analogies.
        """
        analogies: Analogies = batch.input("analogies")
        earned, novelty = Earnings.of(batch), analogies.novelty
        ahead = outlook(batch, earned, unknown=_unknown(batch, earned, novelty), doubt=self.doubt)
        gain = ahead.after - ahead.before
        tail = _tail(batch, gain, hidden_share(batch, earned.of_step))
        credit = ahead.of_action - ahead.by_others + tail
        if self.normalize == "std":
            scale = np.sqrt(horizon_of_group(batch)) / earned.deviation(batch)
            credit *= scale[batch.group_of_step]
        parts = {
            "value": ahead.by_others,
            "q": ahead.of_action,
            "tail": tail,
            "step_reward": gain,
            "progress": progress(batch, analogies),
            "advantage": credit,
        }
        return {name: np.where(np.abs(part) > _ROUNDING, part, 0.0) for name, part in parts.items()}

    def value(self, batch: StepBatch) -> Floats:
        """Return V_H of each node without doubt: what the group's own steps say. [num_nodes].

        At the goal it is what the steps into it earned: 1 where outcomes are binary.
        """
        return _value(batch, doubt=0.0)

    def share_of_doubt(self, batch: StepBatch) -> Floats:
        """Return the share of that value which κ more steps to nowhere take away. [num_nodes].

        The more steps lead to the goal, and the less often they were taken, the larger it is. NaN
        where there is no value.
        """
        without, doubted = _value(batch, doubt=0.0), _value(batch, doubt=self.doubt)
        known = without > 0
        return 1.0 - np.divide(doubted, without, out=np.full(len(without), np.nan), where=known)


def _unknown(batch: StepBatch, earned: Earnings, novelty: Floats) -> Unknown:
    """Return what the unknown earns: what failures did, or where nothing was earned, by novelty."""
    num_trajectories = np.bincount(batch.group_of_trajectory, minlength=batch.num_groups)
    hope = np.where(earned.earned_nothing(batch), 0.5 / (num_trajectories + 1.0), 0.0)
    way, end = earned.of_failures(batch)
    new = hope[batch.group_of_node] * novelty / (1 + novelty)
    return Unknown(new=new, way=way, end=end)


def _value(batch: StepBatch, *, doubt: float) -> Floats:
    earned = Earnings.of(batch)
    value = value_of_nodes(batch, earned, doubt=doubt)
    graph, goals = batch.graph, batch.goal_of_group[batch.goal_of_group >= 0]
    times = np.bincount(graph.target, graph.count, batch.num_nodes)
    into = np.bincount(graph.target, graph.count * earned.of_transition, batch.num_nodes)
    value[goals] = into[goals] / times[goals]
    return value


def _tail(batch: StepBatch, gain: Floats, hidden: Floats) -> Floats:
    """Return [num_steps] Σ_{k≥1} ((1 - η²) λ^k + η²) gain_{t+k}; η is the group's `hidden`."""
    lasting = (hidden**2)[batch.group_of_step]
    fading = _following(batch, gain, hidden ** (1 / _FAR))
    return (1.0 - lasting) * fading + lasting * _following(batch, gain, np.ones(batch.num_groups))


def _following(batch: StepBatch, gain: Floats, decay: Floats) -> Floats:
    """Return [num_steps] Σ_{k≥1} λ^k gain_{t+k} within each trajectory; λ is its group's decay."""
    following = np.zeros(batch.num_steps)
    of_trajectory = decay[batch.group_of_trajectory]
    lengths = np.where(of_trajectory > 0, batch.trajectory_length, 0)
    last = batch.trajectory_start[1:] - 1
    for offset in range(1, int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > offset)
        step = last[longer] - offset
        following[step] = of_trajectory[longer] * (gain[step + 1] + following[step + 1])
    return following
