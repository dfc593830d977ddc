"""The small worlds and the policies that play them; worlds with waits, and unions of tasks."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from experiments.credit_truth.exact import Exact, distances, policy_of, success_of
from experiments.credit_truth.padding import padded, with_waits
from experiments.credit_truth.policies import (
    LONG_POLICIES,
    MIXED_POLICIES,
    POLICIES,
    logits_of,
    success_wanted,
)
from experiments.credit_truth.rollouts import sample
from experiments.credit_truth.union import union
from experiments.credit_truth.world import MAX_STATES, World, enumerate_world
from experiments.credit_truth.worlds.table import (
    DESIGN_LONG,
    DESIGN_MIXED,
    DESIGN_WORLDS,
    GRADED_WORLDS,
    JUDGING_LONG,
    JUDGING_MIXED,
    WORLDS,
    world_named,
)
from experiments.episodes import GROUP_SIZE

DISTANCES = {
    "push": 12,
    "cliff": 6,
    "maze": 14,
    "vault": 12,
    "safe": 2,
    "brew": 5,
    "office": 4,
    "shop": 5,
    "rabbit": 5,
    "lift": 8,
    "ladder": 3,
    "lake": 8,
    "slippery": 8,
    "crate": 16,
    "road": 5.5,
    "fog": 11,
    "mirrors": 6,
    "puzzle": 6,
    "blocks": 4,
    "flat": 3,
    "farm": 13,
    "pump": 5,
    "lever": 5.5,
    "letter": 3.5,
    "errands": 8,
    "program": 4,
    "quiz": 6,
    "basket": 4,
    "approach": 41,
    "record": 56,
    "setup": 31,
    "pipeline": 120,
    "inbox": 101,
    "bugs": 2.25,
    "desk": 31.25,
    "shops": 3.1875,
    "migration": 60,
    "research": 38,
    "release": 200,
    "ticket": 41,
    "refactor": 60,
    "voyage": 90,
    "queries": 2.375,
    "trips": 26.75,
    "intakes": 20.8125,
}
"""Least number of actions from the start, counted on the rules; the mean over starts."""

LONG_WORLDS = (*DESIGN_LONG, *JUDGING_LONG, *DESIGN_MIXED, *JUDGING_MIXED)
ALL = (*WORLDS, *DESIGN_WORLDS, *GRADED_WORLDS, *LONG_WORLDS)


@pytest.mark.parametrize("name", ALL)
def test_a_world_is_a_process_that_can_be_won(name: str):
    world = world_named(name)
    assert world.name == name
    assert world.num_states <= MAX_STATES
    assert world.start.sum() == pytest.approx(1)
    assert world.probability.sum(2) == pytest.approx(np.ones(world.admissible.shape))
    assert (world.probability >= 0).all()
    assert (world.is_won <= world.is_over).all()
    stays = world.target == np.arange(world.num_states)[:, None, None]
    assert stays[world.is_over].all()
    assert stays[~world.admissible].all()
    assert world.admissible[~world.is_over].any(1).all()
    remaining = distances(world)
    assert world.start @ remaining == pytest.approx(DISTANCES[name])
    assert DISTANCES[name] <= world.horizon


@pytest.mark.parametrize("name", ALL)
def test_every_state_is_reached_with_some_probability(name: str):
    world = world_named(name)
    reached = world.start > 0
    for _ in range(world.num_states):
        flow = reached[:, None, None] & (world.probability > 0)
        more = reached | np.isin(np.arange(world.num_states), world.target[flow])
        if (more == reached).all():
            break
        reached = more
    assert reached.all()


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("lake", POLICIES), ("quiz", POLICIES), ("setup", LONG_POLICIES), ("bugs", MIXED_POLICIES)],
)
def test_a_policy_wins_as_often_as_its_kind_says(name: str, kinds: Mapping[str, float]):
    world = world_named(name)
    for policy in kinds:
        first, again, other = (logits_of(world, policy, seed) for seed in (0, 0, 1))
        for logits in (first, other):
            assert success_of(world, policy_of(world, logits)) == pytest.approx(
                success_wanted(world)[policy], abs=1e-4
            )
        assert (first == again).all()
        assert (first != other).any()


@pytest.mark.parametrize("name", GRADED_WORLDS)
def test_a_score_is_earned_where_an_episode_ends_and_is_one_where_it_is_won(name: str):
    world = world_named(name)
    assert world.is_graded
    assert ((world.score >= 0) & (world.score <= 1)).all()
    assert len(np.unique(world.score)) >= 4
    assert (world.is_won == (world.is_over & (world.score == 1))).all()


def test_no_world_that_judges_is_one_for_design():
    assert len(set(ALL)) == len(ALL)


def test_the_worlds_are_of_different_nature():
    def lost(name: str) -> float:
        """Return the share of states from which nothing wins."""
        world = world_named(name)
        never = np.isin(distances(world), distances(world).max()) & ~world.is_won
        reachable = np.isin(world.target, np.flatnonzero(~never)).any((1, 2))
        return float((never & ~reachable).mean())

    assert lost("push") > 0.3
    assert lost("brew") > 0.3
    assert lost("maze") == lost("lift") == 0
    for name in ("maze", "vault", "safe"):
        assert len(world_named(name).views) < world_named(name).num_states, name
    for name in ("cliff", "safe", "rabbit", "ladder"):
        assert world_named(name).probability.max(2).min() < 1, name
    assert (world_named("safe").start > 0).sum() == 9
    office = world_named("office")
    idle = (office.target[:, :, 0] == np.arange(office.num_states)[:, None])[~office.is_over]
    assert idle.mean() > 0.5


def test_an_action_that_is_not_admissible_does_nothing():
    push = world_named("push")
    # The player starts in the corner: a wall is to the north and to the west.
    assert push.admissible[0].tolist() == [False, True, False, True]
    assert push.target[0, :, 0].tolist() == [0, 1, 0, 2]


def test_a_world_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="at most 10000 states"):
        enumerate_world(
            name="endless",
            horizon=1,
            actions=("on",),
            starts={0: 1.0},
            outcomes=lambda state, _: {state + 1: 1.0},
            view=str,
            end=lambda _: None,
        )


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
