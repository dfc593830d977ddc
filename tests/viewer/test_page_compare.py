"""The Compare page."""

from pathlib import Path

import pytest

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries.compare import differing_steps
from tests.viewer.browser import click_row, markdown_of, open_page, page_of
from tests.viewer.stores import Shared, credited, two_tasks
from tests.viewer.test_page_trajectory import charts
from tests.worlds import trajectory, worked_example, write_store

NAMES = ("graphgpo", "grpo")


def _two_iterations(root: Path) -> Store:
    credited(root, worked_example())
    return credited(root, trajectory("w", "A c C d won", success=True), iteration=1)


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
    (cells,) = charts(app)
    assert sum(row["steps"] for row in cells) == expected["steps"]
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


def test_two_iterations_are_compared_by_their_common_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = _two_iterations(tmp_path / "s")
    app = open_page(monkeypatch, store, "compare", iteration=0, compare="Two iterations")
    assert not app.exception
    assert app.query_params["other"] == "r0/1"
    # A alone in its group has no advantage: neither sign nor correlation.
    values = {metric.label: metric.value for metric in app.metric}
    assert values == {"Actions compared": "2", "Correlation": "–", "Sign flips": "0.0%"}
    shown = app.dataframe[0].value
    assert set(shown["action"]) <= {"c", "d"}
    click_row(app, "differing", 0)
    assert page_of(app) == "trajectory"
    assert app.query_params["trajectory"] == "x"


@pytest.mark.parametrize("kind", ["Two estimators", "Two iterations"])
def test_with_nothing_to_compare_the_page_says_so(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, kind: str
):
    app = open_page(monkeypatch, shared(worked_example), "compare", compare=kind)
    assert not app.exception
    expected = {
        "Two estimators": "a second one is needed to compare",
        "Two iterations": "no other iteration",
    }
    assert expected[kind] in markdown_of(app)


def test_an_iteration_without_that_credit_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = credited(tmp_path / "s", worked_example())
    write_store(tmp_path / "s", worked_example(), iteration=1)
    app = open_page(monkeypatch, store, "compare", iteration=0, compare="Two iterations")
    assert "This iteration has no credit yet" in markdown_of(app)
    assert "--iteration 1" in app.code[0].value


def test_actions_of_two_iterations_are_judged_by_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root, near = tmp_path / "s", {"oracle_distance": 2.0, "next_oracle_distance": 1.0}
    won = trajectory("w", "A c C d won", success=True, **near)
    credited(root, [*won, *trajectory("l", "A c C e D", **near)])
    more = [step for name in "mn" for step in trajectory(name, "A b C e D", **near)]
    more[-1] |= {"next_oracle_distance": 3.0}
    store = credited(root, [*won, *more], iteration=1)
    app = open_page(monkeypatch, store, "compare", iteration=1, compare="Two iterations")
    assert not app.exception
    shown = app.dataframe[0].value.set_index("action")
    assert set(shown.index) >= {"e"}
    told = {action: shown.loc[action, "true"] for action in shown.index}
    # The end of m went away from the goal, and the end of n came nearer.
    assert told.pop("e") == "2 → unknown"
    assert set(told.values()) == {"2 → 1"}
    for action in told:
        signs = ["✓" if shown.loc[action, side] > 0 else "✗" for side in ("left", "right")]
        assert shown.loc[action, "truth"] == " ".join(signs)
    assert shown.loc["e", "truth"] == ""
