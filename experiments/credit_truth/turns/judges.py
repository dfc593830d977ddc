"""Who judges states after a turn, and how what they say is logged."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from experiments.credit_truth.exact import distances
from experiments.credit_truth.judge import Played
from experiments.episodes import Floats, Rollouts
from graphcredit.store.parquet.numbers import arrow_of

Judge: TypeAlias = Callable[[Played, np.random.Generator], Floats]
"""Returns [num_steps] what a judge says of the state that each step led to."""

_NOISE = 0.2
_PER_UNIT = 2.0**20


def _value(played: Played, _: np.random.Generator) -> Floats:
    """Return the exact chance to win from there, under the policy that plays."""
    world, choice = played.world, played.policy[played.world.view]
    value = np.empty((world.horizon + 1, world.num_states))
    value[-1] = world.is_won
    for time in reversed(range(world.horizon)):
        of_action = (world.probability * value[time + 1][world.target]).sum(2)
        value[time] = (choice * of_action).sum(1)
    return value[played.rollouts.time + 1, played.rollouts.target]


def _nearness(played: Played, _: np.random.Generator) -> Floats:
    """Return how near to a win the state is, from 0 to 1, whoever plays."""
    remaining = distances(played.world)
    return (1 - remaining / remaining.max())[played.rollouts.target]


def _noisy(played: Played, rng: np.random.Generator) -> Floats:
    """Return the nearness with noise, drawn anew at every step."""
    nearness = _nearness(played, rng)
    return nearness + _NOISE * rng.standard_normal(len(nearness))


def _misleading(played: Played, _: np.random.Generator) -> Floats:
    """Return a number of each view that has nothing to do with the way to a win."""
    world = played.world
    said = np.random.default_rng(0).random(len(world.views))
    return said[world.view[played.rollouts.target]]


JUDGES: Mapping[str, Judge] = {
    "the chance to win": _value,
    "nearness": _nearness,
    "noisy nearness": _noisy,
    "misleading": _misleading,
}


def with_scores(table: pa.Table, said: Floats) -> pa.Table:
    """Return steps with the scores of the states that they led to."""
    return table.append_column("score", arrow_of(said))


def with_rewards(table: pa.Table, said: Floats, rollouts: Rollouts) -> pa.Table:
    """Return steps whose rewards pay for each change of the score, and change no return.

    What a judge says moves rewards in time alone: the exact gradient stays that of winning. It is
    rounded to a millionth or so, to a power of two, so that sums are exact, and equal returns stay
    equal.
    """
    after = np.where(rollouts.is_last, 0.0, np.round(said * _PER_UNIT) / _PER_UNIT)
    before = np.where(rollouts.time > 0, np.roll(after, 1), 0.0)
    rewards = table["reward"].to_numpy() + after - before
    return table.set_column(table.schema.get_field_index("reward"), "reward", arrow_of(rewards))
