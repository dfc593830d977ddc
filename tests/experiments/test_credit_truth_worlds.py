"""The small worlds and the policies that play them."""

from collections.abc import Mapping

import numpy as np
import pytest

from experiments.credit_truth.exact import distances, policy_of, success_of
from experiments.credit_truth.policies import (
    LONG_POLICIES,
    MIXED_POLICIES,
    POLICIES,
    logits_of,
    success_wanted,
)
from experiments.credit_truth.world import MAX_STATES, enumerate_world
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
