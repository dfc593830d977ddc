"""The tools environment: what calls do, what is logged of them, and what the oracle knows."""

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.tool_world.environment import open_tools
from experiments.tool_world.names import list_tasks
from graphcredit.collector.environments.base import Environment, Transition, replay
from graphcredit.collector.states.content import content_of, is_failure
from graphcredit.store.errors import OptionError
from tests.cli.in_process import completed

SPEC = "w2-s0"
"""Ada Byron wants her order O107 cancelled, and O259 sent to another address; there is a third."""
FIND, LIST = 'find_customer({"email": "ada@example.com"})', 'list_orders({"customer_id": "C444"})'
FINISH = "finish({})"


def _open(spec: str = SPEC) -> Environment:
    return open_tools(spec, Path(), True)


def _play(actions: list[str], spec: str = SPEC) -> list[Transition]:
    environment = _open(spec)
    return [environment.step(action) for action in actions]


def _on(tool: str, order: str, **more: str) -> str:
    return f"{tool}({json.dumps({**more, 'order_id': order})})"


WON = [
    *(FIND, LIST, _on("get_order", "O259"), _on("get_order", "O107")),
    *('ask_user({"question": "Is there anything else?"})', _on("cancel_order", "O107")),
    _on("change_address", "O259", address="12 Elm Street"),
]


def test_wishes_are_met_in_any_order_and_by_the_end_only():
    played = _play([*WON, FINISH])
    assert [each.reward for each in played] == [0.0] * 7 + [1.0]
    assert (played[-1].success, played[-1].terminated) == (True, True)
    assert all(each.is_action_valid for each in played)


@pytest.mark.parametrize(
    ("actions", "score"),
    [
        ([], 0.0),
        (WON[:6], 0.5),  # one of two wishes
        ([*WON, _on("refund_order", "O107")], 0.5),  # that one was not to be refunded
    ],
)
def test_scores_are_graded(actions: list[str], score: float):
    last = _play([*actions, FINISH])[-1]
    assert (last.reward, last.success) == (score, False)


def test_another_order_that_was_changed_halves_the_score():
    first = _open().step(FIND)
    assert first.observation.oracle_distance is not None
    listed = json.loads(_play([FIND, LIST])[-1].observation.text or "")["orders"]
    (other,) = {order["order_id"] for order in listed} - {"O107", "O259"}
    spoilt = [*WON, _on("get_order", other), _on("cancel_order", other), FINISH]
    assert [each.reward for each in _play(spoilt)][-1] == 0.5
    # It cannot be undone: no plan from there on.
    assert _play(spoilt)[-2].observation.oracle_distance is None


def test_an_error_of_the_service_and_a_refused_call_change_nothing():
    before = _play(WON)[-1].observation
    failed = _play([*WON, _on("return_order", "O107")])[-1]
    assert is_failure(failed.observation.text or "")
    assert failed.is_action_valid
    assert failed.observation.state == before.state
    for action in ("look", "get_order({})", _on("get_order", "O1"), "finish({", "finish(3)"):
        refused = _play([*WON, action])[-1]
        assert (refused.is_action_valid, refused.observation.state) == (False, before.state)


def test_an_address_can_be_changed_back():
    seen = _play([FIND, 'get_customer({"customer_id": "C444"})'])[-1].observation
    home = json.loads(seen.text or "")
    back = _play([*WON, _on("change_address", "O259", address=home["address"])])[-1].observation
    assert (back.oracle_distance, back.state) == (2.0, _play(WON[:6])[-1].observation.state)


def test_texts_are_never_the_same_and_their_content_is():
    once, twice = (_play([FIND, *[LIST] * n])[-1].observation for n in (1, 2))
    assert once.state == twice.state
    assert once.text != twice.text
    assert content_of(once.text or "") == content_of(twice.text or "")
    again = _play([FIND, LIST])[-1].observation
    assert again == once  # the same calls give the same texts


@given(st.data())
@pytest.mark.parametrize("spec", ["w1-s1", "w2-s0", "w2-s3"])
def test_the_distance_falls_by_one_on_the_plan_and_by_no_more_anywhere(
    spec: str, data: st.DataObject
):
    environment = _open(spec)
    now = environment.reset()
    for _ in range(data.draw(st.integers(0, 8))):
        if not now.admissible_actions:
            break
        distance = now.oracle_distance
        transition = environment.step(data.draw(st.sampled_from(now.admissible_actions)))
        now = transition.observation
        assert transition.is_action_valid
        after = now.oracle_distance
        assert after is None or (distance is not None and after >= distance - 1)
        assert transition.success == (after == 0)
    plan = now.oracle_actions
    if plan:
        distances = [environment.step(action).observation.oracle_distance for action in plan]
        assert distances == [float(len(plan) - 1 - n) for n in range(len(plan))]


def test_a_plan_is_a_shortest_one_by_trying_everything():
    environment = _open("w1-s0")
    start = environment.reset()
    distance = int(start.oracle_distance or 0)
    reached: set[object] = {start.state}
    paths: list[tuple[str, ...]] = [()]
    for length, _ in product(range(1, distance + 1), (0,)):
        longer: list[tuple[str, ...]] = []
        for path in paths:
            for action in replay(environment, path).admissible_actions or ():
                replay(environment, path)
                transition = environment.step(action)
                assert not (transition.success and length < distance)
                if transition.observation.state not in reached:
                    reached.add(transition.observation.state)
                    longer.append((*path, action))
        paths = longer
    assert any(replay(environment, path).oracle_distance == 0 for path in paths)


def test_tasks_are_named_and_drawn():
    tasks = list_tasks(None, num_tasks=3, seed=4)
    assert [task.spec for task in tasks] == ["w1-s4", "w2-s4", "w1-s5"]
    for games in ("w3", "w1-", "w1-sx"):
        with pytest.raises(OptionError, match="tasks are named"):
            list_tasks(games, num_tasks=1, seed=0)


def test_states_by_a_rule_are_credited_and_effects_are_the_true_ones(tmp_path: Path):
    store = tmp_path / "store"
    said: list[str] = []
    for command in (
        f"collect {store} --env tools --tasks 8 --group-size 8 --max-steps 30 --oracle --workers 0 "
        "--policy oracle:0.6",
        f"states {store} --set effects",
        f"credit {store} -e graphgpo --state effects",
        f"check {store}",
    ):
        done = completed(*command.split())
        assert done.returncode == 0, done.stderr
        said += done.stdout.splitlines()
    assert "  change something: cancel_order, change_address, refund_order, return_order" in said
    assert "  count too, since the log does not say: finish" in said
