"""Exact values, visits and policy gradient of a tabular softmax policy.

The policy sees views, never states or the time. The value is over states and time: V_t(s) is the
expected score of an episode in state s, with t steps played: where only wins score, the probability
that it is still won before the horizon.

    Q_t(s, a) = Σ_s' P(s' | s, a) V_{t+1}(s')        V_t(s) = Σ_a π(a | o(s)) Q_t(s, a)
    ∂J/∂θ(o, a) = Σ_t Σ_{s: o(s) = o} d_t(s) π(a | o) (Q_t(s, a) - V_t(s))

d_t(s) is the probability to act in s at time t. The advantage of an action in a view is the mean of
Q_t(s, a) - V_t(s) over the times and states in which the policy acts there, weighted by d_t(s).
"""

from dataclasses import dataclass

import numpy as np

from experiments.credit_truth.world import World
from experiments.episodes import Floats


def policy_of(world: World, logits: Floats) -> Floats:
    """Return [num_views, num_actions] probabilities; what is not playable has none."""
    masked = np.where(world.playable, logits, -np.inf)
    weights = np.exp(masked - masked.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def success_of(world: World, policy: Floats) -> float:
    """Return the expected score of an episode."""
    steps = policy[world.view][:, :, None] * world.probability
    target, value = world.target.reshape(world.num_states, -1), world.score
    weight = steps.reshape(world.num_states, -1)
    for _ in range(world.horizon):
        value = np.einsum("so,so->s", weight, value[target])
    return float(world.start @ value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exact:
    """All that is known of a policy in a world."""

    success: float
    """J, the expected score of an episode."""
    value: Floats
    """[horizon, num_states] V_t(s)."""
    advantage: Floats
    """[horizon, num_states, num_actions] Q_t(s, a) - V_t(s)."""
    visits: Floats
    """[num_views] expected number of actions in each view."""
    gradient: Floats
    """[num_views, num_actions] ∂J/∂θ."""
    view_advantage: Floats
    """[num_views, num_actions] advantage of an action in a view; 0 where nobody acts."""

    @classmethod
    def of(cls, world: World, policy: Floats) -> "Exact":
        """Return the exact values of a policy.

        Args:
            world: Where it plays.
            policy: [num_views, num_actions] probabilities.
        """
        choice = policy[world.view]
        value = np.empty((world.horizon + 1, world.num_states))
        value[-1] = world.score
        advantage = np.empty((world.horizon, *choice.shape))
        for time in reversed(range(world.horizon)):
            of_action = (world.probability * value[time + 1][world.target]).sum(2)
            value[time] = (choice * of_action).sum(1)
            advantage[time] = of_action - value[time][:, None]
        acting = _acting(world, choice)
        mean = np.zeros_like(policy)
        np.add.at(mean, world.view, np.einsum("ts,tsa->sa", acting, advantage))
        visits = np.zeros(len(world.views))
        np.add.at(visits, world.view, acting.sum(0))
        return cls(
            success=float(world.start @ value[0]),
            value=value[:-1],
            advantage=advantage,
            visits=visits,
            gradient=mean * policy,
            view_advantage=mean / np.where(visits > 0, visits, 1.0)[:, None],
        )


def _acting(world: World, choice: Floats) -> Floats:
    """Return [horizon, num_states] d_t(s): the probability to act in s at time t."""
    acting = np.empty((world.horizon, world.num_states))
    now = world.start
    for time in range(world.horizon):
        acting[time] = np.where(world.is_over, 0.0, now)
        flow = now[:, None, None] * choice[:, :, None] * world.probability
        now = np.bincount(world.target.ravel(), flow.ravel(), world.num_states)
    return acting


def distances(world: World) -> Floats:
    """Return [num_states] the least number of actions to a win, if chance helps.

    States that cannot win any more are one action farther than the farthest that can.
    """
    distance = np.where(world.is_won, 0.0, np.inf)
    leads = np.where(
        world.probability > 0, world.target, np.arange(world.num_states)[:, None, None]
    )
    while True:
        nearer = np.minimum(distance, 1 + distance[leads].min((1, 2)))
        if np.array_equal(nearer, distance):
            break
        distance = nearer
    return np.where(np.isfinite(distance), distance, distance[np.isfinite(distance)].max() + 1)
