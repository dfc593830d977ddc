"""The Tasks page, and what an address may leave out."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from graphcredit.credit.why.decisions import decisions
from graphcredit.credit.why.sentences import sentence
from graphcredit.store import Store
from graphcredit.viewer.queries.tasks import task_facts
from tests.viewer.browser import click_row, markdown_of, open_page, page_of
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import trajectory, worked_example, write_store


def _column(app: AppTest, name: str) -> list[Any]:
    return list(app.dataframe[0].value[name])


def test_the_table_is_what_the_query_says(shared: Shared):
    names = ("graphgpo", "grpo")
    store = shared(two_tasks, *names)
    app = open_page(store, "tasks", estimator="grpo")
    facts = task_facts(store, run_id="r0", iteration=0, estimator="grpo", others=names)
    assert _column(app, "task_id") == ["t0", "t1"]
    assert app.text[0].value == (
        "5 complete rollouts of 2 tasks · 20% succeeded · 1 task in which all have one return"
    )
    for name in ("success_rate", "num_states", "num_merges", "singleton_share", "disagreement"):
        assert _column(app, name) == facts[name].to_pylist(), name
    assert app.query_params == {"run": "r0", "iteration": "0", "estimator": "grpo"}


def test_tasks_are_filtered_found_and_ordered(shared: Shared):
    app = open_page(shared(two_tasks), "tasks")
    app.selectbox(key="kind").select("never solved").run()
    assert _column(app, "task_id") == ["t1"]
    app.selectbox(key="kind").select("mixed outcomes").run()
    assert _column(app, "task_id") == ["t0"]
    app.selectbox(key="kind").select("all").run()
    app.selectbox(key="first").select("lowest success").run()
    assert _column(app, "task_id") == ["t1", "t0"]
    app.text_input(key="find").input("T0").run()
    assert _column(app, "task_id") == ["t0"]


def test_a_row_leads_to_its_graph(shared: Shared):
    app = open_page(shared(two_tasks), "tasks")
    click_row(app, "tasks_table", 1)
    assert page_of(app) == "graph"
    assert app.query_params["task"] == "t1"
    assert app.query_params["estimator"] == "graphgpo"


def test_credit_that_is_out_of_date_is_said_and_found(tmp_path: Path):
    credited(tmp_path / "s", two_tasks())
    late = trajectory("late", "A a B b C", success=True, task_id="t1")
    app = open_page(write_store(tmp_path / "s", two_tasks(), late), "tasks")
    assert "Rollouts of 1 of 2 tasks came after the credit" in app.warning[0].value
    app.selectbox(key="kind").select("credit out of date").run()
    assert _column(app, "task_id") == ["t1"]


def test_the_most_telling_estimator_is_chosen_first(shared: Shared):
    store = shared(two_tasks, "gigpo", "grpo", "graphgpo", "rewardflow")
    for page in ("tasks", "graph", "trajectory"):
        app = open_page(store, page)
        assert app.query_params["estimator"] == "graphgpo", page
        box = app.selectbox(key="choose_estimator")
        assert box.options == ["graphgpo", "rewardflow", "gigpo", "grpo"], page


def test_the_last_iteration_with_credit_is_shown_first(tmp_path: Path):
    store = credited(tmp_path / "s", two_tasks())
    write_store(tmp_path / "s", worked_example(), iteration=1)
    app = open_page(store, "tasks")
    assert app.query_params["iteration"] == "0"
    app.selectbox(key="choose_iteration").select(1).run()
    assert app.query_params["iteration"] == "1"
    assert "no credit yet" in app.info[0].value
    assert "--iteration 1" in app.code[0].value
    assert _column(app, "task_id") == ["t0"]


def test_an_address_of_something_that_is_gone_shows_something_else_and_says_so(shared: Shared):
    store = shared(two_tasks)
    app = open_page(store, "tasks", run="<b>gone</b>", iteration="x")
    assert [warning.value for warning in app.warning] == [
        "The address asks for the iteration `x`, which must be a number from 0 on.",
        "The address asks for the run `<b>gone</b>`, which is not here: `r0` is shown.",
    ]
    assert (app.query_params["run"], app.query_params["iteration"]) == ("r0", "0")


def test_a_damaged_iteration_shows_the_error_as_text(tmp_path: Path):
    store = write_store(tmp_path / "s", two_tasks(), two_tasks())
    store.shards()[1].path.write_bytes(b"PAR1 no PAR1")
    app = open_page(store, "tasks")
    assert "w1-000000.parquet" in app.code[0].value


def test_what_mattered_stands_first_on_tasks_and_on_its_step(shared: Shared):
    store = shared(two_tasks, "reach")
    first = decisions(store, run_id="r0", iteration=0)[0]
    app = open_page(store, "tasks")
    assert sentence(first) in [text.value for text in app.text]
    (offered,) = app.get("download_button")
    assert offered.proto.label == "Picture of one decision"
    place = {"task": first.task_id, "trajectory": first.trajectory_id, "step": first.step_index}
    app = open_page(store, "trajectory", **place, estimator="reach")
    assert sentence(first) in [text.value for text in app.text]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with x in two iterations of r0, and p only in r0/0."""
    root = tmp_path_factory.mktemp("address") / "s"
    credited(root, two_tasks())
    credited(root, worked_example(), iteration=1)
    return credited(root, worked_example("t2"), run_id="r1")


@pytest.mark.parametrize("page", ["trajectory", "graph"])
def test_the_id_of_a_trajectory_is_enough(store: Store, page: str):
    app = open_page(store, page, trajectory="p", step=1)
    assert not [warning for warning in app.warning if "address" in warning.value]
    found = {name: app.query_params[name] for name in ("run", "iteration", "task", "trajectory")}
    assert found == {"run": "r0", "iteration": "0", "task": "t1", "trajectory": "p"}
    assert app.query_params["step"] == "1"


def test_of_several_the_last_one_is_shown_and_said(store: Store):
    app = open_page(store, "trajectory", trajectory="x")
    assert (app.query_params["run"], app.query_params["iteration"]) == ("r0", "1")
    assert "2 rollouts have this id: the last one is shown." in markdown_of(app)
    app = open_page(store, "trajectory", trajectory="x", iteration=0)
    assert app.query_params["iteration"] == "0"
    assert "have this id" not in markdown_of(app)


def test_an_id_that_is_nowhere_is_named(store: Store):
    app = open_page(store, "trajectory", trajectory="nobody")
    assert app.warning[0].value == "The store has no rollout `nobody` there."
