"""Policies that play: they win a quarter, win rarely, or make systematic mistakes.

A policy starts from random logits and follows the exact advantage of each action in each view, in
steps of a fixed KL divergence, until it wins as often as its kind says. Mistakes are planted in a
policy that wins more: in some views it prefers a wrong action. In worlds with scores it is the
expected score that decides; as whatever ends there earns something, it is higher.
"""

from collections.abc import Callable, Mapping
from zlib import crc32

import numpy as np

from experiments.credit_truth.exact import Exact, policy_of, success_of
from experiments.credit_truth.kl_step import step_size
from experiments.credit_truth.world import World
from experiments.episodes import Floats

POLICIES: Mapping[str, float] = {"quarter": 0.25, "rare": 0.04, "mistaken": 0.15}
"""How often each kind of policy wins."""

LONG_POLICIES: Mapping[str, float] = {"quarter": 0.25, "half": 0.6, "mostly": 0.9}
"""How often each kind wins in the worlds of long ways."""

SCORES: Mapping[str, float] = {"quarter": 0.45, "rare": 0.3, "mistaken": 0.35}
"""The expected score of each kind in a world with scores."""

_BEFORE_MISTAKES, _SCORE_BEFORE_MISTAKES = 0.4, 0.6
_STRONG_MISTAKE = 3.0
_NOISE = 0.5
_MAX_STEPS = 1_000
_HALVINGS = 30


MIXED_POLICIES: Mapping[str, float] = {"low": 0.35, "middle": 0.42, "high": 0.5}
"""How often each kind wins in the mean over the tasks of a batch."""


def success_wanted(world: World) -> Mapping[str, float]:
    """Return how often each kind of policy wins, or what it scores where there are scores."""
    return SCORES if world.is_graded else {**POLICIES, **LONG_POLICIES, **MIXED_POLICIES}


def logits_of(world: World, policy: str, seed: int) -> Floats:
    """Return [num_views, num_actions] logits, always the same for the same arguments.

    Args:
        world: Where the policy plays.
        policy: A key of `POLICIES`.
        seed: Draws where it starts, and its mistakes.

    Raises:
        ValueError: The policy cannot win as often as its kind says.
    """
    rng = np.random.default_rng([crc32(f"{world.name} {policy}".encode()), seed])
    start = _NOISE * rng.standard_normal((len(world.views), len(world.actions)))
    wanted = success_wanted(world)[policy]
    if policy == "mistaken":
        before = _SCORE_BEFORE_MISTAKES if world.is_graded else _BEFORE_MISTAKES
        return _with_mistakes(world, _trained(world, start, before), wanted, rng)
    return _trained(world, start, wanted)


def _trained(world: World, logits: Floats, success: float) -> Floats:
    """Return logits on the way up, or down, from some logits that win as often as wanted."""
    exact = Exact.of(world, policy_of(world, logits))
    sign = 1.0 if exact.success < success else -1.0
    before = logits
    for _ in range(_MAX_STEPS):
        way = sign * exact.view_advantage
        before, logits = logits, logits + step_size(world, logits, exact, way) * way
        exact = Exact.of(world, policy_of(world, logits))
        if sign * exact.success >= sign * success:
            break
    else:
        raise ValueError(f"{world.name}: a policy must win {success:.2f}; found {exact.success}")
    return _between(world, lambda share: before + share * (logits - before), success)


def _with_mistakes(world: World, logits: Floats, wanted: float, rng: np.random.Generator) -> Floats:
    """Return logits with mistakes in as few views as make it win too rarely, then less strong."""
    exact = Exact.of(world, policy_of(world, logits))
    worst = np.where(world.playable, exact.view_advantage, np.inf).argmin(1)
    has_choice = (world.playable.sum(1) > 1) & (exact.visits > 0)
    views = rng.permutation(np.flatnonzero(has_choice))
    best = np.where(world.playable, logits, -np.inf).max(1)

    def mistaken(num_views: int, strength: float) -> Floats:
        wrong = views[:num_views]
        changed = logits.copy()
        changed[wrong, worst[wrong]] = np.maximum(
            logits[wrong, worst[wrong]], best[wrong] + strength
        )
        return changed

    for num_views in range(1, len(views) + 1):
        success = success_of(world, policy_of(world, mistaken(num_views, _STRONG_MISTAKE)))
        if success <= wanted:
            break
    else:
        raise ValueError(f"{world.name}: mistakes in all views must make it lose")
    return _between(
        world, lambda share: mistaken(num_views, _STRONG_MISTAKE - 20 * (1 - share)), wanted
    )


def _between(world: World, at: Callable[[float], Floats], success: float) -> Floats:
    """Return the logits between `at(0)` and `at(1)` that win as often as wanted."""
    sign = 1.0 if success_of(world, policy_of(world, at(1.0))) >= success else -1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_beyond = sign * success_of(world, policy_of(world, at(middle))) >= sign * success
        low, high = (low, middle) if is_beyond else (middle, high)
    return at(high)
