"""Exact values and gradients by hand, the KL step, and the rank correlation within views."""

import numpy as np
import pytest

from experiments.credit_truth.exact import Exact, distances, policy_of, success_of
from experiments.credit_truth.judge import group_gradients
from experiments.credit_truth.kl_step import KL, gain_along, step_size
from experiments.credit_truth.rollouts import Lists, sample, step_table
from experiments.credit_truth.world import World, enumerate_world
from experiments.credit_truth.worlds.table import world_named
from experiments.episodes import Rollouts


def _walk(*, is_seen: bool = True) -> World:
    """Return two rooms and a goal; `go` leads on, `stay` stays; three steps."""
    return enumerate_world(
        name="walk",
        horizon=3,
        actions=("go", "stay"),
        starts={0: 1.0},
        outcomes=lambda room, action: {room + (action == "go"): 1.0},
        view=lambda room: f"room {room}" if is_seen else ("goal" if room == 2 else "a room"),
        end=lambda room: True if room == 2 else None,
    )


def _exact(world: World) -> Exact:
    return Exact.of(world, policy_of(world, np.zeros((len(world.views), len(world.actions)))))


def test_values_and_gradient_of_two_rooms_by_hand():
    exact = _exact(_walk())
    assert exact.success == pytest.approx(1 / 2)
    # V_1 is 1/4 and 3/4 in the two rooms, V_2 is 0 and 1/2.
    assert exact.advantage[0, 0] == pytest.approx([1 / 4, -1 / 4])
    assert exact.advantage[1, :2] == pytest.approx(np.array([[1 / 4, -1 / 4], [1 / 4, -1 / 4]]))
    assert exact.advantage[2, :2] == pytest.approx(np.array([[0, 0], [1 / 2, -1 / 2]]))
    assert exact.visits == pytest.approx([1 + 1 / 2 + 1 / 4, 1 / 2 + 1 / 2, 0])
    assert exact.gradient[:2, 0] == pytest.approx([3 / 16, 3 / 16])
    assert exact.gradient[:2, 1] == pytest.approx([-3 / 16, -3 / 16])
    # Room 0: (1 · 1/4 + 1/2 · 1/4 + 1/4 · 0) / (7/4)
    assert exact.view_advantage[0, 0] == pytest.approx(3 / 14)


def test_rooms_that_look_alike_share_their_gradient():
    """Two of three steps must be `go`: J = 3p² - 2p³, and dp/dθ = p(1 - p)."""
    exact = _exact(_walk(is_seen=False))
    assert exact.success == pytest.approx(1 / 2)
    assert exact.gradient[0] == pytest.approx([3 / 8, -3 / 8])
    assert exact.view_advantage[0] == pytest.approx([3 / 11, -3 / 11])


@pytest.mark.parametrize("name", ["safe", "maze", "cliff", "rabbit", "program"])
def test_the_gradient_is_that_of_finite_differences(name: str):
    world, rng = world_named(name), np.random.default_rng(3)
    logits = rng.standard_normal((len(world.views), len(world.actions)))
    exact = Exact.of(world, policy_of(world, logits))
    assert exact.success == pytest.approx(success_of(world, policy_of(world, logits)))
    direction = rng.standard_normal(logits.shape)
    ahead, behind = (
        success_of(world, policy_of(world, logits + size * direction)) for size in (1e-4, -1e-4)
    )
    assert (exact.gradient * direction).sum() == pytest.approx((ahead - behind) / 2e-4, rel=1e-5)
    assert exact.gradient.sum(1) == pytest.approx(np.zeros(len(world.views)), abs=1e-12)


def test_the_distance_counts_the_actions_left_and_dead_ends_are_farthest():
    assert distances(_walk()).tolist() == [2, 1, 0]
    cliff = world_named("cliff")
    remaining = distances(cliff)
    # North, then five times east; the wind blows the last of these into the goal.
    assert remaining[cliff.start > 0] == pytest.approx([6])
    assert set(remaining[cliff.is_over & ~cliff.is_won]) == {remaining.max()}


def test_the_step_has_the_size_that_algebra_gives():
    """With chances of 1/2, KL = -log(4 q (1 - q)) / 2 in the one view that changes."""
    world = _walk(is_seen=False)
    logits = np.zeros((len(world.views), 2))
    chance = (1 + np.sqrt(1 - np.exp(-2 * KL))) / 2
    size = step_size(world, logits, _exact(world), np.array([[1.0, -1.0], [0.0, 0.0]]))
    assert size == pytest.approx(np.log(chance / (1 - chance)) / 2)
    gain = gain_along(world, logits, _exact(world), np.array([[1.0, -1.0], [0.0, 0.0]]))
    assert gain == pytest.approx(3 * chance**2 - 2 * chance**3 - 1 / 2)


def test_the_divergence_is_weighted_by_visits():
    """A change in one of two views may be larger, in the ratio of the visits."""
    world, logits = _walk(), np.zeros((3, 2))
    size = step_size(world, logits, _exact(world), np.array([[0, 0], [1.0, -1.0], [0, 0]]))
    share = 1 / (1 + 7 / 4)
    chance = (1 + np.sqrt(1 - np.exp(-2 * KL / share))) / 2
    assert size == pytest.approx(np.log(chance / (1 - chance)) / 2)


def test_the_gain_ignores_the_scale_and_sees_the_sign():
    world, logits = _walk(), np.zeros((3, 2))
    exact = _exact(world)
    best = gain_along(world, logits, exact, exact.gradient)
    assert best > 0
    assert gain_along(world, logits, exact, 1000 * exact.gradient) == pytest.approx(best)
    assert gain_along(world, logits, exact, -exact.gradient) < 0
    assert gain_along(world, logits, exact, np.zeros((3, 2))) == 0


def test_the_sampled_gradient_of_true_credit_is_the_exact_one():
    world = world_named("safe")
    policy = policy_of(world, np.zeros((len(world.views), len(world.actions))))
    exact = Exact.of(world, policy)
    rollouts = sample(world, policy[None], 40_000, np.random.default_rng(0))
    truth = exact.advantage[rollouts.time, rollouts.state, rollouts.action]
    found = group_gradients(world, policy, rollouts, truth).sum(0) / 40_000
    assert found == pytest.approx(exact.gradient, abs=0.003)
    won = world.is_won[rollouts.target].sum() / 40_000
    assert won == pytest.approx(exact.success, abs=0.005)


def _two_episodes() -> Rollouts:
    """Return one episode that goes twice, and one that stays, goes and stays."""
    return Rollouts(
        episode=np.array([0, 0, 1, 1, 1]),
        time=np.array([0, 1, 0, 1, 2]),
        state=np.array([0, 1, 0, 0, 1]),
        action=np.array([0, 0, 1, 0, 1]),
        target=np.array([1, 2, 0, 1, 1]),
        is_last=np.array([False, True, False, False, True]),
    )


def test_the_gradient_of_a_group_by_hand():
    world = _walk()
    policy = np.full((3, 2), 1 / 2)
    credit = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    (found,) = group_gradients(world, policy, _two_episodes(), credit)
    # Room 0: 1 and 8 for `go`, 4 for `stay`; room 1: 2 for `go`, 16 for `stay`.
    assert found.tolist() == [[9 - 6.5, 4 - 6.5], [2 - 9, 16 - 9], [0, 0]]


def test_the_steps_are_logged_as_a_collector_would():
    steps = step_table(_walk(), _two_episodes(), lists="exact")
    assert set(steps["task_id"].to_pylist()) == {"task 00000"}, "eight episodes are a group"
    assert steps["state"].to_pylist() == ["room 0", "room 1", "room 0", "room 0", "room 1"]
    assert steps["next_state"].to_pylist() == ["room 1", "room 2", "room 0", "room 1", "room 1"]
    assert steps["success"].to_pylist() == [None, True, None, None, False]
    assert steps["reward"].to_pylist() == [0, 1, 0, 0, 0]
    assert steps["terminated"].to_pylist() == [False, True, False, False, False]
    assert steps["truncated"].to_pylist() == [False, False, False, False, True]
    assert steps["admissible_actions"].to_pylist() == [["go", "stay"]] * 5


def test_lists_are_missing_constant_or_flipped():
    world = world_named("vault")
    policy = policy_of(world, np.zeros((len(world.views), len(world.actions))))
    rollouts = sample(world, policy[None], 400, np.random.default_rng(0))

    def flips(lists: Lists) -> np.ndarray:
        steps = step_table(world, rollouts, lists=lists)
        listed = [
            [action in found for action in world.actions]
            for found in steps["admissible_actions"].to_pylist()
        ]
        return np.array(listed) != world.admissible[rollouts.state]

    assert not flips("exact").any()
    assert flips("noisy").mean() == pytest.approx(0.1, abs=0.01)
    assert (flips("constant") == ~world.admissible[rollouts.state]).all()
    view, wrong = world.view[rollouts.state], flips("wrong")
    assert len(np.unique(np.column_stack([view, wrong]), axis=0)) == len(np.unique(view))
    assert 0 < wrong.mean() < 0.3
    none = step_table(world, rollouts, lists="none")
    assert none["admissible_actions"].null_count == len(rollouts.state)
