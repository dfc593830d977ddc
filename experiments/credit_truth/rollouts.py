"""Sample episodes of a policy in a world, and the steps that a collector would log of them."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from experiments.credit_truth.world import World
from experiments.episodes import Bools, Floats, Ints, Rollouts, numbered, roll_out
from experiments.episodes import step_table as table_of

Lists: TypeAlias = Literal["exact", "none", "constant", "noisy", "wrong"]
"""What is logged as the admissible actions of a step."""

LISTS: Mapping[Lists, str] = {
    "exact": "what is admissible in the true state",
    "none": "nothing",
    "constant": "all actions of the world at every step",
    "noisy": "the exact list, each action flipped with probability 0.1, anew at every step",
    "wrong": "the exact list, each action flipped with probability 0.1, once for each view",
}

_FLIPPED = 0.1


def sample(world: World, policies: Floats, num_episodes: int, rng: np.random.Generator) -> Rollouts:
    """Return the same number of episodes of each of some policies.

    Args:
        world: Where they play.
        policies: [num_policies, num_views, num_actions] probabilities.
        num_episodes: Of each policy; those of a policy follow each other.
        rng: Draws the actions and the transitions.
    """
    player = np.repeat(np.arange(len(policies)), num_episodes)

    def act(playing: Ints, now: Ints) -> tuple[Ints, Floats, Ints]:
        probability = policies[player[playing], world.view[now]]
        action = _draw(probability, rng)
        outcome = _draw(world.probability[now, action], rng)
        chance = probability[np.arange(len(now)), action]
        return action, chance, world.target[now, action, outcome]

    start = rng.choice(world.num_states, size=len(player), p=world.start)
    return roll_out(start, horizon=world.horizon, is_over=world.is_over, act=act)


def _draw(probability: Floats, rng: np.random.Generator) -> Ints:
    """Return one index for each row of probabilities."""
    total = probability.cumsum(1)
    # The sum may round to a little less than 1, and what has no probability is never drawn.
    return (total > rng.random((len(total), 1)) * total[:, -1:]).argmax(1)


def step_table(world: World, rollouts: Rollouts, *, group_size: int, lists: Lists) -> pa.Table:
    """Return the steps as a table; the state is the view, and each group is a task.

    Args:
        world: Where they were played.
        rollouts: Sampled episodes.
        group_size: Consecutive episodes that form a group.
        lists: How the admissible actions are logged.
    """
    views = pa.array(world.views)
    return table_of(
        rollouts,
        tasks=numbered("task", rollouts.episode // group_size),
        texts=(
            views.take(pa.array(world.view[rollouts.state])),
            views.take(pa.array(world.view[rollouts.target])),
        ),
        actions=world.actions,
        admissible=world.admissible,
        listed=_listed(world, rollouts, lists),
        is_won=world.is_won,
        score=world.score,
        is_over=world.is_over,
    )


def _listed(world: World, rollouts: Rollouts, lists: Lists) -> Bools | None:
    """Return [num_steps, num_actions] what is logged as admissible; None for nothing."""
    exact = world.admissible[rollouts.state]
    if lists == "none":
        return None
    if lists == "constant":
        return np.ones_like(exact)
    if lists == "exact":
        return exact
    num_draws = len(exact) if lists == "noisy" else len(world.views)
    draws = np.random.default_rng(0).random((num_draws, len(world.actions))) < _FLIPPED
    return exact ^ (draws if lists == "noisy" else draws[world.view[rollouts.state]])
