"""The tool world for a small model: its texts, its payments, its unseen tasks."""

from pathlib import Path

import polars as pl
import pytest

from experiments.tool_calls.run import LEARNT, UNSEEN, WARM, report
from experiments.tool_calls.world import NamedTools, specs, world_of
from experiments.tool_world.service import action_of, distances_of, service_named

SPEC = specs(0, 1)[0]
RESEARCH = Path(__file__).parents[2] / "docs" / "research"


def test_the_tables_of_the_page_are_those_of_its_runs():
    tables = report(pl.read_csv(RESEARCH / "tables" / "learning-tools.csv")).strip().split("\n\n")
    page = (RESEARCH / "learning.md").read_text(encoding="utf-8")
    assert len(tables) == 2
    assert all(table in page for table in tables)


def test_unseen_tasks_share_no_wishes_with_those_that_are_played_before():
    worlds = [{world_of(spec) for spec in each} for each in (UNSEEN, LEARNT, WARM)]
    assert [len(each) for each in worlds] == [40, 64, 32]
    assert not worlds[0] & (worlds[1] | worlds[2])


@pytest.mark.parametrize("is_paid", [False, True])
def test_the_best_calls_win_and_payments_by_turn_have_the_same_sum(is_paid: bool):
    """Two wishes: half of the score each; turns that read are paid nothing."""
    environment = NamedTools(service_named(SPEC), is_paid=is_paid, tutor=None)
    environment.reset()
    rewards: list[float] = []
    for best in distances_of(SPEC).plan(service_named(SPEC).start) or ():
        names = {action_of(*call): name for name, call in environment._calls().items()}
        transition = environment.step(names[best])
        rewards.append(transition.reward)
    assert transition.success
    assert sum(rewards) == 1.0
    assert sorted(set(rewards)) == ([0.0, 0.5] if is_paid else [0.0, 1.0])


def test_a_tutor_allows_the_best_call_alone_in_some_turns():
    environment = NamedTools(service_named(SPEC), is_paid=False, tutor=distances_of(SPEC))
    allowed = [environment.reset().admissible_actions or ()]
    for _ in range(9):
        transition = environment.step("get_policy")
        allowed.append(transition.observation.admissible_actions or ())
    assert set(map(len, allowed)) == {1, 4}
    assert ("find_customer",) in allowed


def test_a_call_that_cannot_be_made_changes_nothing():
    environment = NamedTools(service_named(SPEC), is_paid=True, tutor=None)
    before = environment.reset()
    transition = environment.step("refund_order lamp")
    assert not transition.is_action_valid
    assert transition.reward == 0
    assert transition.observation.state == before.state
