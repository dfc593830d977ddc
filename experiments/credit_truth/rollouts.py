"""Sample episodes of a policy in a world, and the steps that a collector would log of them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.credit_truth.world import World
from experiments.episodes import GROUP_SIZE, Bools, Floats, Ints, Rollouts

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

_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def sample(world: World, policies: Floats, num_episodes: int, rng: np.random.Generator) -> Rollouts:
    """Return the same number of episodes of each of some policies, all played at once.

    Args:
        world: Where they play.
        policies: [num_policies, num_views, num_actions] probabilities.
        num_episodes: Of each policy; those of a policy follow each other. Groups of them play the
            world's tasks in turn.
        rng: Draws the actions and the transitions.
    """
    player = np.repeat(np.arange(len(policies)), num_episodes)
    task = np.arange(len(player)) // GROUP_SIZE % len(world.starts)
    state = np.empty(len(player), np.int64)
    for number, start in enumerate(world.starts):
        of_task = task == number
        state[of_task] = rng.choice(world.num_states, size=of_task.sum(), p=start)
    playing = np.arange(len(player))
    columns: list[tuple[np.ndarray, ...]] = []
    for time in range(world.horizon):
        playing = playing[~world.is_over[state[playing]]]
        if not len(playing):
            break
        now = state[playing]
        action = _draw(policies[player[playing], world.view[now]], rng)
        outcome = _draw(world.probability[now, action], rng)
        state[playing] = target = world.target[now, action, outcome]
        columns.append((playing, np.full(len(now), time), now, action, target))
    episode, times, states, actions, targets = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    order = np.lexsort((times, episode))
    return Rollouts(
        episode=episode[order],
        time=times[order],
        state=states[order],
        action=actions[order],
        target=targets[order],
        is_last=np.diff(episode[order], append=-1) != 0,
    )


def _draw(probability: Floats, rng: np.random.Generator) -> Ints:
    """Return one index for each row of probabilities."""
    total = probability.cumsum(1)
    # The sum may round to a little less than 1, and what has no probability is never drawn.
    return (total > rng.random((len(total), 1)) * total[:, -1:]).argmax(1)


def step_table(world: World, rollouts: Rollouts, *, lists: Lists) -> pa.Table:
    """Return the steps as a collector would log them; a group is a task.

    Args:
        world: Where they were played.
        rollouts: Sampled episodes; `GROUP_SIZE` that follow each other form a group.
        lists: How the admissible actions are logged.
    """
    num_steps, target = len(rollouts.state), rollouts.target
    words = pa.array(world.actions)
    ended = world.is_over[target] & rollouts.is_last
    columns = {
        "task_id": _numbered("task", rollouts.episode // GROUP_SIZE),
        "trajectory_id": _numbered("episode", rollouts.episode),
        "step_index": pa.array(rollouts.time, pa.int32()),
        "state": _texts(world, rollouts, rollouts.state),
        "next_state": _texts(world, rollouts, target),
        "action": words.take(pa.array(rollouts.action)),
        "admissible_actions": _as_lists(_listed(world, rollouts, lists), words, num_steps),
        "is_action_valid": pa.array(world.admissible[rollouts.state, rollouts.action]),
        "reward": pa.array(np.where(rollouts.is_last, world.score[target], 0.0)),
        "cost": pa.array(np.ones(num_steps)),
        "terminated": pa.array(ended),
        "truncated": pa.array(rollouts.is_last & ~ended),
        "success": pa.array(world.is_won[target] & rollouts.is_last, mask=~rollouts.is_last),
        "worker_id": pa.repeat("w0", num_steps),
        "logged_at": pa.repeat(pa.scalar(_SOME_DAY, pa.timestamp("us", tz="UTC")), num_steps),
    }
    return pa.table(columns)


def _texts(world: World, rollouts: Rollouts, state: Ints) -> pa.Array:
    """Return what is logged of the states of steps."""
    texts = pa.array(world.texts).take(pa.array(world.text[state]))
    if not world.is_own.any():
        return texts
    own = pc.call_function(
        "binary_join_element_wise", [texts, _numbered("of", rollouts.episode), " "]
    )
    return pc.call_function("if_else", [pa.array(world.is_own[state]), own, texts])


def _numbered(kind: str, numbers: Ints) -> pa.Array:
    """Return names such as `task 00007`, whose order is that of their numbers."""
    return pa.array([f"{kind} {number:05d}" for number in numbers.tolist()])


def _as_lists(listed: Bools | None, words: pa.Array, num_steps: int) -> pa.Array:
    if listed is None:
        return pa.nulls(num_steps, pa.list_(pa.string()))
    ends = pa.array(np.concatenate([[0], listed.sum(1).cumsum()]), pa.int32())
    return pa.ListArray.from_arrays(ends, words.take(pa.array(np.nonzero(listed)[1])))


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
