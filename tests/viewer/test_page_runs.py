"""The Runs page."""

from pathlib import Path

import pytest

from graphcredit.store import Store, create_store
from graphcredit.viewer.queries.iterations import iteration_facts
from tests.viewer.browser import click_row, go, open_page, page_of
from tests.viewer.stores import credited, two_tasks
from tests.worlds import trajectory, worked_example, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return two iterations of r0 with credit, and one of r1 without."""
    root = tmp_path_factory.mktemp("runs") / "s"
    for iteration in (0, 1):
        credited(root, two_tasks(), iteration=iteration)
    return write_store(root, worked_example(), run_id="r1")


def test_the_table_has_every_iteration_of_every_run(store: Store):
    app = open_page(store, "runs")
    shown = app.dataframe[0].value
    assert list(zip(shown["run"], shown["iteration"], strict=True)) == [
        ("r0", 0),
        ("r0", 1),
        ("r1", 0),
    ]
    expected = [*iteration_facts(store, run_id="r0").to_pylist()]
    expected += iteration_facts(store, run_id="r1").to_pylist()
    for name in ("success_rate", "mean_return", "invalid_share", "degenerate_share"):
        assert list(shown[name]) == pytest.approx([row[name] for row in expected]), name


def test_a_row_leads_to_its_tasks(store: Store):
    app = click_row(open_page(store, "runs"), "runs_table", 0)
    assert page_of(app) == "tasks"
    assert app.query_params["iteration"] == "0"


def test_a_store_whose_first_steps_are_in_a_spool_says_so(tmp_path: Path):
    store = create_store(tmp_path / "s")
    store.spool_dir.mkdir()
    (store.spool_dir / "w0.jsonl").touch()
    app = open_page(store, "runs")
    assert "are being recorded" in app.info[0].value
    assert app.code[0].value == f"graphcredit check {store.root} --recover"


def test_a_damaged_iteration_is_named_and_the_others_are_shown(tmp_path: Path):
    for iteration in (0, 1):
        store = write_store(tmp_path / "s", two_tasks(), iteration=iteration)
    store.shards("r0", 1)[0].path.write_bytes(b"PAR1 no PAR1")
    app = open_page(store, "runs")
    assert list(app.dataframe[0].value["iteration"]) == [0]
    assert "w0-000000.parquet" in app.code[0].value
    assert "iteration=000001" in app.code[0].value


def test_a_store_that_grows_is_read_again(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    app = open_page(store, "runs")
    assert list(app.dataframe[0].value["num_trajectories"]) == [3]
    begun = trajectory("u", "A a B", task_id="t1", success=None)
    write_store(tmp_path / "s", worked_example(), begun)
    (store.steps_dir("r0", 0) / "w2-000000.parquet.tmp").write_bytes(b"PAR1")
    app.run()
    assert not app.exception
    shown = app.dataframe[0].value
    assert list(shown["num_trajectories"]) == [3]
    assert list(shown["num_incomplete"]) == [1]


def test_a_menu_click_keeps_what_was_selected(store: Store):
    app = open_page(store, "tasks", run="r0", iteration=0)
    go(app, "runs")
    assert (app.query_params["run"], app.query_params["iteration"]) == ("r0", "0")
