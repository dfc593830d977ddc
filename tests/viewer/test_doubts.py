"""Why not to rely on the credit of a group: at the numbers, on three pages."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.tasks import task_facts
from graphcredit.viewer.widgets.doubts import doubts_of_facts, doubts_of_steps, group_doubts
from tests.viewer.browser import open_page
from tests.viewer.stores import credited
from tests.worlds import trajectory, worked_example

HERE: dict[str, Any] = {"run_id": "r0", "iteration": 0}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a sound group, a group of one, one that nobody won, and one whose states differ."""
    won: Any = {"rewards": [0.0, 1.0], "success": True}
    rows = [
        *worked_example(),
        *trajectory("alone", "A a B b C", task_id="one", **won),
        *(row for name in "pq" for row in trajectory(name, "A a B a A", task_id="lost")),
        *trajectory("u", "A a B b C", task_id="apart", **won),
        *trajectory("v", "A c D d E", task_id="apart"),
        *trajectory("w", "A e F f G", task_id="apart"),
    ]
    root: Path = tmp_path_factory.mktemp("doubts") / "s"
    return credited(root, rows)


EXPECTED = {
    "t0": "",
    "one": "group of one",
    "lost": "nobody won, equal returns",
    # B, D and F are visited once each, A three times: 3 of 6.
    "apart": "",
}


def test_doubts_are_the_same_by_the_facts_and_by_the_steps(store: Store):
    facts = task_facts(store, **HERE, estimator="graphgpo", others=("graphgpo",))
    names = dict(zip(facts["task_id"].to_pylist(), doubts_of_facts(facts), strict=True))
    assert names == EXPECTED
    for task, expected in EXPECTED.items():
        steps = task_steps(store, **HERE, task_id=task)
        assert ", ".join(doubt.name for doubt in doubts_of_steps(steps)) == expected


def test_returns_of_a_group_that_nobody_won_are_no_doubt_about_themselves():
    told = [
        group_doubts(size=4, success_rate=0.0, has_equal_returns=equal, alone=0.0)[0]
        for equal in (True, False)
    ]
    assert [doubt.name for doubt in told] == ["nobody won"] * 2
    assert "no credit here says" in told[0].sentence
    assert "only credit that reads returns" in told[1].sentence


def test_more_than_half_of_the_steps_alone_is_a_doubt(store: Store):
    steps = task_steps(store, **HERE, task_id="apart").slice(1)
    # Without u's first step: B, D and F once, A twice.
    (doubt,) = doubts_of_steps(steps)
    assert doubt.name == "60% alone"
    assert doubt.sentence.startswith("60% of the steps here start from a state")
    assert doubts_of_steps(steps.slice(0, 0)) == []


@pytest.mark.parametrize("page", ["graph", "trajectory"])
def test_a_group_of_one_is_named_where_its_credit_is_shown(store: Store, page: str):
    for task, number in (("one", 1), ("t0", 0)):
        app = open_page(store, page, task=task)
        said = [w.value for w in app.warning if "there is no other to compare" in w.value]
        assert len(said) == number


def test_the_list_of_tasks_has_a_column_of_doubts(store: Store):
    app = open_page(store, "tasks")
    shown = app.dataframe[0].value
    assert dict(zip(shown["task_id"], shown["doubts"], strict=True)) == EXPECTED
