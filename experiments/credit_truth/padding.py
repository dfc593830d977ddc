"""Padding: each step is followed by forced steps, which leave the true gradient as it was.

After a step that does not end the episode, the player waits `num_waits` times. Each wait shows the
state that was reached and which wait it is, and nothing else can be done there. A credit that says
the same of the same choices gains the same, however many waits there are.
"""

from dataclasses import replace

import numpy as np

from experiments.credit_truth.world import World
from experiments.episodes import Ints, Rollouts

WAIT = "wait on"


def padded(world: World, num_waits: int) -> World:
    """Return a world with waits, whose first states, views and texts are those of the world.

    Args:
        world: The world without waits.
        num_waits: Waits after each step.
    """
    states = np.arange(world.num_states)
    num_copies = num_waits + 1
    # Copy 0 of a state is the state itself; copy k of it is the k-th wait before it.
    copies = states + world.num_states * np.arange(num_copies)[:, None]
    following = np.roll(copies, -1, axis=0)
    size = (num_copies * world.num_states, len(world.actions) + 1, world.target.shape[2])
    target = np.empty(size, np.int64)
    target[:] = np.concatenate([states, following[1:].ravel()])[:, None, None]
    probability = np.zeros(size)
    probability[:, :, 0] = 1.0
    probability[: world.num_states, :-1] = world.probability
    reached = world.target
    target[: world.num_states, :-1] = np.where(
        world.is_over[reached] | (num_waits == 0), reached, following[0][reached]
    )
    is_wait = np.arange(size[0]) >= world.num_states
    admissible = np.zeros(size[:2], bool)
    admissible[: world.num_states, :-1] = world.admissible
    admissible[is_wait, -1] = True
    playable = np.zeros((num_copies * len(world.views), size[1]), bool)
    playable[: len(world.views), :-1] = world.playable
    playable[len(world.views) :, -1] = True
    return replace(
        world,
        horizon=world.horizon * num_copies,
        actions=(*world.actions, WAIT),
        views=_waiting(world.views, num_waits),
        view=np.concatenate([world.view + len(world.views) * copy for copy in range(num_copies)]),
        texts=_waiting(world.texts, num_waits),
        text=np.concatenate([world.text + len(world.texts) * copy for copy in range(num_copies)]),
        is_own=np.tile(world.is_own, num_copies),
        starts=np.where(is_wait, 0.0, np.tile(world.starts, num_copies)),
        target=target,
        probability=probability,
        admissible=admissible,
        playable=playable,
        is_won=np.tile(world.is_won, num_copies),
        is_over=np.tile(world.is_over, num_copies) & ~is_wait,
        score=np.tile(world.score, num_copies),
    )


def with_waits(world: World, rollouts: Rollouts, num_waits: int) -> tuple[Rollouts, Ints]:
    """Return episodes as they are in the world with waits, and the places of the steps in them.

    Args:
        world: The world without waits, where the episodes were played.
        rollouts: The episodes.
        num_waits: Waits after each step.
    """
    length = np.where(world.is_over[rollouts.target], 1, num_waits + 1)
    place = np.cumsum(length) - length
    of_step = np.repeat(np.arange(len(length)), length)
    wait = np.arange(len(of_step)) - place[of_step]  # 0 is the step itself
    target = rollouts.target[of_step]
    is_step, is_end = wait == 0, wait == length[of_step] - 1
    padded_rollouts = Rollouts(
        episode=rollouts.episode[of_step],
        time=rollouts.time[of_step] * (num_waits + 1) + wait,
        state=np.where(is_step, rollouts.state[of_step], target + world.num_states * wait),
        action=np.where(is_step, rollouts.action[of_step], len(world.actions)),
        target=np.where(is_end, target, target + world.num_states * (wait + 1)),
        is_last=rollouts.is_last[of_step] & is_end,
    )
    return padded_rollouts, place


def _waiting(texts: tuple[str, ...], num_waits: int) -> tuple[str, ...]:
    waits = range(1, num_waits + 1)
    return (*texts, *(f"{text}, waiting {k} of {num_waits}" for k in waits for text in texts))
