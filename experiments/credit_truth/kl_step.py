"""A step of a fixed size along a gradient, and the success that it gains.

Logits move on a straight line along the gradient until the mean of KL(π_old ‖ π_new) over the views
that the old policy acts in, weighted by its expected visits, is `KL`. Where episodes are long, the
sum over an episode is `KL_OF_EPISODE` instead: else a way of 200 steps would pay for any change of
a single choice.
"""

import numpy as np

from experiments.credit_truth.exact import Exact, policy_of, success_of
from experiments.credit_truth.world import World
from experiments.episodes import Floats

KL = 0.02
KL_OF_EPISODE = 0.1

LONG = 40
"""Steps that an episode of a long world may have more than."""

_HALVINGS = 40


def gain_along(world: World, logits: Floats, exact: Exact, gradient: Floats) -> float:
    """Return the true gain in success of the step; 0 for a gradient of zeros.

    Args:
        world: Where the policy plays.
        logits: [num_views, num_actions] of the policy that played.
        exact: Its exact values.
        gradient: [num_views, num_actions] estimated gradient, of any scale.
    """
    if not np.abs(gradient).max() > 0:
        return 0.0
    moved = logits + step_size(world, logits, exact, gradient) * gradient
    return success_of(world, policy_of(world, moved)) - exact.success


def step_size(world: World, logits: Floats, exact: Exact, gradient: Floats) -> float:
    """Return the length of the step along the gradient, found by bisection."""
    views = np.flatnonzero((exact.visits > 0) & (np.abs(gradient).max(1) > 0))
    weight = exact.visits[views] / exact.visits.sum()
    playable, old, along = world.playable[views], logits[views], gradient[views]
    probability = policy_of(world, logits)[views]

    def mean_kl(size: float) -> float:
        new = np.where(playable, old + size * along, -np.inf)
        new -= new.max(1, keepdims=True)
        log_sum = np.log(np.exp(new).sum(1))
        gap = np.where(playable, np.log(np.maximum(probability, 1e-300)) - new, 0.0)
        return float(weight @ ((probability * gap).sum(1) + log_sum))

    wanted = KL if world.horizon <= LONG else KL_OF_EPISODE / float(exact.visits.sum())
    high = 1 / float(np.abs(along).max())
    while mean_kl(high) < wanted:
        high *= 2
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_kl(middle) < wanted else (low, middle)
    return (low + high) / 2
