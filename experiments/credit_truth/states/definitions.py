"""Definitions of a state over sampled episodes, from the true state to none at all."""

from collections.abc import Iterator

import numpy as np

from experiments.credit_truth.world import World
from experiments.episodes import Ints, Rollouts

NAMES: dict[str, str] = {
    "true": "the true state",
    "split in 2": "each state split in two at random, at every visit",
    "split in 4": "in four",
    "with time": "the true state and the time, four steps at once",
    "two views": "what is seen, and what was seen before",
    "blurred": "the true state, and 3 of 10 visits thrown into one",
    "in pairs": "true states united in pairs at random",
    "in eights": "in eights",
    "last action": "the last action alone",
    "random": "one of eight at every visit",
    "time": "the time alone",
    "one": "one state for all",
    "each": "each visit a state",
}

_BLURRED = 0.3


def definitions(world: World, rollouts: Rollouts, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield [num_steps + num_episodes] numbers of states, in the order of `NAMES`.

    The states of an episode follow each other; the last one is that after its last step.

    Args:
        world: Where the episodes were played.
        rollouts: The episodes.
        rng: Draws what is random.
    """
    states = _visits(rollouts.state, rollouts.target, rollouts)
    time = _visits(rollouts.time, rollouts.time + 1, rollouts)
    view, united = world.view[states], rng.permutation(world.num_states)[states]
    before = np.where(time > 0, np.roll(view, 1), -1)
    action = np.where(time > 0, np.roll(_visits(rollouts.action, 0 * states, rollouts), 1), -1)
    size, width = len(states), int(view.max()) + 2
    yield states
    yield states * 2 + rng.integers(2, size=size)
    yield states * 4 + rng.integers(4, size=size)
    yield states * (world.horizon + 1) + time // 4
    yield view * width + before + 1
    yield np.where(rng.random(size) < _BLURRED, world.num_states, states)
    yield united // 2
    yield united // 8
    yield action + 1
    yield rng.integers(8, size=size)
    yield time
    yield np.zeros(size, np.int64)
    yield np.arange(size)


def _visits(of_step: Ints, after: Ints, rollouts: Rollouts) -> Ints:
    """Return the values of all steps, with those after the last steps of episodes between them."""
    lasts = np.flatnonzero(rollouts.is_last)
    ends = after[lasts] if len(after) == len(of_step) else np.zeros(len(lasts), np.int64)
    return np.insert(of_step, lasts + 1, ends)


def steps_of(visits: Ints, rollouts: Rollouts) -> tuple[Ints, Ints]:
    """Return [num_steps] the states before, and after each step."""
    before = np.arange(len(rollouts.state)) + np.cumsum(rollouts.is_last) - rollouts.is_last
    return visits[before], visits[before + 1]
