"""The service with tools in the exact yardstick: its values, its logs, and its table."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.credit_truth.exact import distances
from experiments.credit_truth.judge import Played, Unit
from experiments.credit_truth.tools.log import effects_of, logged
from experiments.credit_truth.tools.report import with_most_evidence
from experiments.credit_truth.tools.run import judge
from experiments.credit_truth.worlds.table import DESIGN_TOOL_WORLDS, TOOL_WORLDS, world_named
from experiments.tool_world.service import distances_of, service_named
from graphcredit.collector.states.restate import restated

UNIT = Unit(world="w1-s1", policy="quarter", seed=0, num_groups=64, estimators=("reach",))


@pytest.fixture(scope="module")
def played() -> Played:
    return Played.of(replace(UNIT, num_groups=16))


def test_no_task_is_for_design_and_judges_too():
    assert not set(TOOL_WORLDS) & set(DESIGN_TOOL_WORLDS)


@pytest.mark.parametrize("spec", ["w1-s1", "w2-s2"])
def test_the_world_is_as_far_from_success_as_the_search_of_the_service_says(spec: str):
    world = world_named(spec)
    plan = distances_of(spec).plan(service_named(spec).start)
    assert plan
    state, far = 0, distances(world)
    for done, action in enumerate(plan):
        assert far[state] == len(plan) - done
        state = int(world.target[state, world.actions.index(action), 0])
    assert world.is_won[state]


def test_no_two_episodes_read_the_same_and_equal_results_are_one_state(played: Played):
    steps = logged(played.world, played.rollouts)
    texts = steps["next_state"].to_pylist()
    of_tool = [text for text in texts if "request_id" in text]
    assert len(set(of_tool)) > 0.99 * len(of_tool)
    states = restated(steps, "results")["state"].to_pylist()
    assert len(set(states)) < 0.5 * len(states)
    goes_on = np.flatnonzero(~played.rollouts.is_last).tolist()
    before = steps["state"].to_pylist()
    assert all(texts[step] == before[step + 1] for step in goes_on)


def test_the_log_tells_what_changes_an_order(played: Played):
    effects = effects_of(logged(played.world, played.rollouts), num_groups=16)
    assert "return_order" in effects.tools
    assert {"get_order", "list_orders"} <= set(effects.unchanging)


def test_the_true_state_is_worth_more_than_the_last_text():
    rows = judge(UNIT)
    worth = dict(rows.select("definition", "fraction").iter_rows())
    assert worth["exact Q - V"] > worth["the true state"] > worth["last"]
    rules = rows.filter(rows["definition"] != "the true state")
    assert with_most_evidence(rows)["evidence"].item() == rules["evidence"].max()
