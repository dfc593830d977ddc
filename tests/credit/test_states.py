"""The states of a task and their graph, on worlds whose texts are counted by hand."""

from pathlib import Path

import pytest

from graphcredit.credit.audit.states import StatesOfTask, states_of_task
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store.errors import InputError
from tests.worlds import trajectory, write_store


def _states(root: Path, *rows: list[dict[str, object]]) -> StatesOfTask:
    store = write_store(root, [step for steps in rows for step in steps])
    merge = MergeSettings(normalise=("casefold",))
    settings = CreditSettings(estimators=configure(["grpo"]), merge=merge)
    assign_credit(store, settings, run_id="r0", iteration=0)
    return states_of_task(store, "t0", run_id="r0", iteration=0)


def _won(name: str, path: list[str], **columns: object) -> list[dict[str, object]]:
    return trajectory(name, path, success=True, **columns)


def test_texts_of_one_state_are_counted_and_the_goal_is_left_out(tmp_path: Path):
    found = _states(
        tmp_path / "s",
        _won("x", ["the Hall", "go", "the pantry", "eat", "won"]),
        _won("y", ["The hall", "go", "the pantry", "eat", "WON"]),
        _won("z", ["the Hall", "go", "the Pantry", "eat", "won"]),
    )
    assert (found.num_texts, len(found.states)) == (4, 2)
    hall, pantry = sorted(found.merged, key=lambda state: state.texts[0].text)
    assert [(text.text, text.visits) for text in hall.texts] == [("the Hall", 2), ("The hall", 1)]
    assert [text.text for text in pantry.texts] == ["the pantry", "the Pantry"]
    assert (hall.visits, pantry.visits) == (3, 3)
    (difference,) = hall.differences()
    assert difference.lines.splitlines() == ["- the Hall", "+ The hall"]


def test_where_an_episode_ends_is_a_state(tmp_path: Path):
    found = _states(tmp_path / "s", trajectory("x", ["hall", "fall", "a pit"]))
    assert sorted(state.texts[0].text for state in found.states) == ["a pit", "hall"]


def test_a_task_without_credit_is_refused_by_name(tmp_path: Path):
    store = write_store(tmp_path / "s", trajectory("x", "A a B"))
    with pytest.raises(InputError, match=r"a task must have credit.*found none of 't9'"):
        states_of_task(store, "t9", run_id="r0", iteration=0)


def test_everything_can_be_json(tmp_path: Path):
    found = _states(tmp_path / "s", _won("x", ["hall", "go", "won"])).as_json()
    assert found["states"][0]["texts"] == ({"text": "hall", "visits": 1},)
    assert found["task_id"] == "t0"
