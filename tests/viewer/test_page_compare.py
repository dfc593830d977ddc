"""The Compare page."""

import pytest

from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries.compare import differing_steps
from tests.viewer.browser import click_row, markdown_of, open_page, page_of
from tests.viewer.stores import Shared, two_tasks
from tests.worlds import worked_example

NAMES = ("graphgpo", "grpo")


def test_the_measures_are_those_of_sql(shared: Shared, monkeypatch: pytest.MonkeyPatch):
    store = shared(two_tasks, *NAMES)
    app = open_page(monkeypatch, store, "compare")
    assert not app.exception
    sql = """
        SELECT count(*) AS steps, corr(grpo_advantage, graphgpo_advantage) AS correlation,
            avg((grpo_advantage * graphgpo_advantage < 0)::INTEGER) AS flips FROM credit
    """
    (expected,) = run_trusted_query(store, sql).table.to_pylist()
    assert {metric.label: metric.value for metric in app.metric} == {
        "Steps compared": str(expected["steps"]),
        "Correlation": f"{expected['correlation']:.3f}",
        "Sign flips": f"{expected['flips']:.1%}",
    }
    assert (app.query_params["estimator"], app.query_params["other"]) == ("graphgpo", "grpo")


def test_a_differing_step_leads_to_its_trajectory(shared: Shared, monkeypatch: pytest.MonkeyPatch):
    store = shared(two_tasks, *NAMES)
    app = open_page(monkeypatch, store, "compare")
    found = differing_steps(
        store,
        run_id="r0",
        iteration=0,
        left="graphgpo",
        right="grpo",
        only_flips=False,
        num_rows=200,
    )
    assert list(app.dataframe[1].value["step_index"]) == found["step_index"].to_pylist()
    click_row(app, "differing", 0)
    assert page_of(app) == "trajectory"
    assert app.query_params["trajectory"] == found["trajectory_id"][0].as_py()
    assert app.query_params["step"] == str(found["step_index"][0].as_py())


def test_only_sign_flips_on_demand(shared: Shared, monkeypatch: pytest.MonkeyPatch):
    store = shared(two_tasks, *NAMES)
    app = open_page(monkeypatch, store, "compare")
    every = app.dataframe[1].value
    app.toggle(key="flips").set_value(True).run()
    flips = app.dataframe[1].value
    assert 0 < len(flips) < len(every)
    assert (flips["left"] * flips["right"] < 0).all()


def test_a_task_leads_to_its_graph(shared: Shared, monkeypatch: pytest.MonkeyPatch):
    app = open_page(monkeypatch, shared(two_tasks, *NAMES), "compare", other="grpo")
    assert list(app.dataframe[0].value["task_id"]) == ["t0", "t1"]
    click_row(app, "compared_tasks", 1)
    assert page_of(app) == "graph"
    assert (app.query_params["task"], app.query_params["other"]) == ("t1", "grpo")


def test_with_nothing_to_compare_the_page_says_so(shared: Shared, monkeypatch: pytest.MonkeyPatch):
    app = open_page(monkeypatch, shared(worked_example), "compare")
    assert not app.exception
    assert "a second one is needed to compare" in markdown_of(app)
