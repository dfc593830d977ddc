"""Waits change neither what a policy wins nor the true gradient."""

import numpy as np
import pytest

from experiments.credit_truth.exact import Exact, policy_of
from experiments.credit_truth.padding import padded, with_waits
from experiments.credit_truth.rollouts import sample
from experiments.credit_truth.worlds.table import world_named


@pytest.mark.parametrize("name", ["lake", "fog", "quiz"])
@pytest.mark.parametrize("num_waits", [0, 1, 3])
def test_a_padded_world_has_the_success_and_the_gradient_of_the_world(name: str, num_waits: int):
    world, rng = world_named(name), np.random.default_rng(1)
    padding = padded(world, num_waits)
    logits = rng.standard_normal((len(padding.views), len(padding.actions)))
    shape = len(world.views), len(world.actions)
    plain = Exact.of(world, policy_of(world, logits[: shape[0], : shape[1]]))
    exact = Exact.of(padding, policy_of(padding, logits))
    assert exact.success == pytest.approx(plain.success)
    assert exact.gradient[: shape[0], : shape[1]] == pytest.approx(plain.gradient)
    assert np.abs(exact.gradient).sum() == pytest.approx(np.abs(plain.gradient).sum())
    assert padding.horizon == world.horizon * (num_waits + 1)
    assert len(set(padding.texts)) == len(padding.texts)


def test_padded_episodes_are_episodes_of_the_padded_world():
    world = world_named("slippery")
    policy = policy_of(world, np.zeros((len(world.views), len(world.actions))))
    rollouts = sample(world, policy[None], 40, np.random.default_rng(0))
    padding = padded(world, 3)
    found, place = with_waits(world, rollouts, 3)
    assert found.state[place].tolist() == rollouts.state.tolist()
    assert found.action[place].tolist() == rollouts.action.tolist()
    leads = padding.target[found.state, found.action] == found.target[:, None]
    assert (leads & (padding.probability[found.state, found.action] > 0)).any(1).all()
    assert padding.admissible[found.state, found.action].mean() > 0.9
    follows = ~found.is_last[:-1]
    assert (found.target[:-1] == found.state[1:])[follows].all()
    assert (found.time[1:] == found.time[:-1] + 1)[follows].all()
    ended = world.is_over[rollouts.target]
    assert len(found.time) == len(ended) + 3 * (~ended).sum()
    assert (padding.is_over[found.target[found.is_last]] == ended[rollouts.is_last]).all()
    first, second = (padding.texts[padding.text[found.state[row]]] for row in (1, 2))
    reached = world.texts[world.text[rollouts.target[0]]]
    assert first == f"{reached}, waiting 1 of 3"
    assert second == f"{reached}, waiting 2 of 3"
