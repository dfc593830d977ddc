"""The page of runs over time."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from graphcredit.store.schema import TRAINING_COLUMNS, arrow_schema
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries.iterations import silent_shares, training_facts
from tests.viewer.browser import click_row, open_page, opened, page_of
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import worked_example, write_store


def _titles(app: AppTest) -> list[str]:
    return [json.loads(chart.proto.spec)["title"] for chart in app.get("vega_lite_chart")]


def _click(app: AppTest, title: str, **point: Any) -> AppTest:
    app.session_state[f"curve_{title}"] = {"selection": {"point": [point]}}
    return app.run()


def test_every_number_has_a_curve_and_a_point_leads_to_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for iteration in (0, 1):
        store = credited(tmp_path / "s", two_tasks(), iteration=iteration)
    write_store(tmp_path / "s", worked_example(), run_id="r1")
    app = open_page(monkeypatch, store, "over_time")
    assert not app.exception
    assert app.multiselect[0].value == ["r0", "r1"]
    assert _titles(app) == [
        *("success", "return", "length in steps", "refused actions", "dead groups"),
        *("steps without signal", "action entropy"),
    ]
    _click(app, "dead groups", run="r0", iteration=1)
    assert page_of(app) == "tasks"
    assert (app.query_params["run"], app.query_params["iteration"]) == ("r0", "1")


def test_the_points_are_a_list_too_which_keys_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for iteration in (0, 1):
        store = credited(tmp_path / "s", two_tasks(), iteration=iteration)
    app = open_page(monkeypatch, store, "over_time")
    assert len(app.dataframe) == 0, "nobody asked for it"
    app = opened(app, "points")
    rows = app.dataframe[0].value
    assert list(dict.fromkeys(rows["curve"])) == _titles(app)
    (success,) = (
        run_trusted_query(
            store, "SELECT avg(success::INTEGER) FROM trajectories WHERE iteration = 1"
        )
        .table.to_pydict()
        .values()
    )
    shown = rows[(rows["curve"] == "success") & (rows["iteration"] == 1)]
    assert shown["value"].tolist() == pytest.approx(success)
    click_row(app, "points", 1)
    assert page_of(app) == "tasks"
    assert (app.query_params["run"], app.query_params["iteration"]) == ("r0", "1")


def test_the_share_of_steps_without_signal_is_that_of_advantage_0(shared: Shared):
    store = shared(two_tasks, "graphgpo", "grpo")
    for name in ("graphgpo", "grpo"):
        sql = f"""
            SELECT iteration, count_if({name}_advantage = 0) / count({name}_advantage)
                AS silent_share
            FROM credit GROUP BY iteration
        """
        expected = run_trusted_query(store, sql).table.to_pylist()
        assert expected[0]["silent_share"] > 0
        assert silent_shares(store, run_id="r0", estimator=name).to_pylist() == expected
    assert silent_shares(store, run_id="r0", estimator="reach").num_rows == 0


def test_a_new_iteration_appears_and_choices_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = credited(tmp_path / "s", two_tasks(), names=("graphgpo", "grpo"))
    write_store(tmp_path / "s", worked_example(), run_id="r1")
    app = open_page(monkeypatch, store, "over_time", estimator="grpo")
    app.multiselect[0].unselect("r1").run()
    before = app.get("vega_lite_chart")[0].proto
    credited(tmp_path / "s", two_tasks(), names=("graphgpo", "grpo"), iteration=1)
    write_store(tmp_path / "s", worked_example(), run_id="r2")
    app.run()
    assert not app.exception
    assert app.get("vega_lite_chart")[0].proto != before
    assert app.multiselect[0].value == ["r0"]
    assert app.multiselect[0].options == ["r0", "r1", "r2"]
    assert app.query_params["estimator"] == "grpo"


def test_an_iteration_that_cannot_be_read_is_named_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for iteration in (0, 1):
        store = write_store(tmp_path / "s", two_tasks(), iteration=iteration)
    store.shards("r0", 1)[0].path.write_bytes(b"PAR1 no PAR1")
    app = open_page(monkeypatch, store, "over_time")
    assert not app.exception
    assert any("iteration=000001" in code.value for code in app.code)
    assert "success" in _titles(app)


def test_the_metrics_of_training_are_drawn_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = write_store(tmp_path / "s", two_tasks())
    path = store.training_path("r0", 0, "first")
    path.parent.mkdir(parents=True)
    row = {"training": "out", "update": 0, "epoch": 0, "loss": 1.0, "seconds": 2.0}
    pq.write_table(pa.Table.from_pylist([row], arrow_schema(TRAINING_COLUMNS)), path)
    app = open_page(monkeypatch, store, "over_time")
    assert not app.exception
    assert app.multiselect[1].value == ["loss"]
    before = len(app.get("vega_lite_chart"))
    app.multiselect[1].select("seconds").run()
    assert len(app.get("vega_lite_chart")) == before + 1


def test_a_metric_that_was_not_measured_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The gap to the sampler is null where the trainer takes the sampler's word."""
    measured = {"loss": 1.0, "mismatch_mean": 0.25, "mismatch_max": 1.0, "mismatch_share": 0.5}
    store = write_store(tmp_path / "s", two_tasks())
    for iteration, metrics in enumerate(({"loss": 2.0}, measured)):
        path = store.training_path("r0", iteration, "out")
        path.parent.mkdir(parents=True)
        row = {"training": "out", "update": 0, "epoch": 0, **metrics}
        pq.write_table(pa.Table.from_pylist([row], arrow_schema(TRAINING_COLUMNS)), path)
    facts = training_facts(store, run_id="r0", iteration=0)
    assert facts["metric"].to_pylist() == ["loss"]
    app = open_page(monkeypatch, store, "over_time")
    assert not app.exception
    assert app.multiselect[1].value == ["mismatch_mean", "mismatch_share", "loss"]
    (store.training_path("r0", 1, "out")).unlink()
    app.run()
    assert not app.exception
    assert app.multiselect[1].options == ["loss"]
    assert app.multiselect[1].value == ["loss"]
