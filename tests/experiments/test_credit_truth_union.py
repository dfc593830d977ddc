"""Tasks that share a policy: its success and gradient are the means over the tasks."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.credit_truth.exact import Exact, policy_of, success_of
from experiments.credit_truth.policies import logits_of
from experiments.credit_truth.rollouts import sample
from experiments.credit_truth.union import union
from experiments.credit_truth.world import World, enumerate_world
from experiments.credit_truth.worlds.table import DESIGN_MIXED, world_named
from experiments.episodes import GROUP_SIZE


def _coin(chance: float) -> World:
    """Return one choice: `try` wins with a chance, `leave` never."""
    return enumerate_world(
        name="coin",
        horizon=1,
        actions=("try", "leave"),
        starts={"start": 1.0},
        outcomes=lambda _, action: (
            {"won": chance, "lost": 1 - chance} if action == "try" else {"lost": 1.0}
        ),
        view=str,
        end=lambda state: {"won": True, "lost": False}.get(state),
    )


def test_three_coins_by_hand():
    """J = q · mean chance, so dJ/dθ = q (1 - q) · mean chance = 1/4 · 0.5."""
    both = union("coins", [_coin(chance) for chance in (0.2, 0.5, 0.8)])
    exact = Exact.of(both, policy_of(both, np.zeros((3, 2))))
    assert both.views == ("start", "won", "lost")
    assert exact.success == pytest.approx(0.25)
    assert exact.gradient[0] == pytest.approx([0.125, -0.125])
    assert exact.visits[0] == pytest.approx(1)


@pytest.mark.parametrize("name", DESIGN_MIXED)
def test_groups_play_the_tasks_in_turn_and_win_from_none_to_all(name: str):
    world = world_named(name)
    policy = policy_of(world, logits_of(world, "high", 0))
    rollouts = sample(world, policy[None], 32 * GROUP_SIZE, np.random.default_rng(0))
    is_first = rollouts.time == 0
    task = rollouts.episode[is_first] // GROUP_SIZE % 16
    assert (world.starts[task, rollouts.state[is_first]] > 0).all()
    won = world.is_won[rollouts.target[rollouts.is_last]].reshape(2, 16, GROUP_SIZE).mean((0, 2))
    assert won.min() == 0
    assert won.max() > 0.9
    alone = [success_of(_of_task(world, start), policy) for start in world.starts]
    assert success_of(world, policy) == pytest.approx(np.mean(alone))
    assert len({round(each, 3) for each in alone}) > 8


def _of_task(world: World, start: np.ndarray) -> World:
    return replace(world, starts=start[None])
