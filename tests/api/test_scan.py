"""`scan`: the rows of every view are those of SQL, and filters reach the files."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import graphcredit
from graphcredit.store import Store, connect, create_store
from graphcredit.store.errors import OptionError, SchemaError
from graphcredit.store.sql.views import VIEW_NAMES
from tests.worlds import trajectory, worked_example, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return two runs, one of them with two iterations and one of these without credit."""
    root = tmp_path_factory.mktemp("k=v") / "s[1]"
    write_store(root, worked_example()[:4], worked_example()[4:])
    write_store(root, trajectory("v", "A a B", success=True), iteration=12)
    store = write_store(root, worked_example("t1"), run_id="r1")
    graphcredit.credit(store, estimators="graphgpo,spo3", run="r0", iteration=0)
    graphcredit.credit(store, estimators="grpo", run="r1")
    return store


def test_every_view_has_the_rows_and_types_of_sql(store: Store):
    with connect(store) as connection:
        for view in VIEW_NAMES:
            lazy = graphcredit.scan(store, view)
            expected = pl.DataFrame(connection.sql(f"FROM {view}").to_arrow_table())
            assert lazy.collect_schema() == expected.schema, view
            assert_frame_equal(lazy.collect(), expected, check_row_order=False)


@pytest.mark.parametrize(("run_id", "iteration"), [("r1", None), (None, 12), ("r0", 12)])
def test_a_run_or_an_iteration_can_be_asked_for(
    store: Store, run_id: str | None, iteration: int | None
):
    with connect(store, run_id=run_id, iteration=iteration) as connection:
        for view in VIEW_NAMES:
            expected = pl.DataFrame(connection.sql(f"FROM {view}").to_arrow_table())
            found = graphcredit.scan(store, view, run_id=run_id, iteration=iteration)
            shared = [name for name in expected.columns if name in found.collect_schema()]
            assert_frame_equal(found.collect().select(shared), expected, check_row_order=False)


@pytest.mark.parametrize(
    "ask",
    [
        lambda lazy: lazy.filter(pl.col("num_trajectories") == 3).select("task_id"),
        lambda lazy: lazy.head(1).select("task_id"),
    ],
    ids=["filter", "head"],
)
def test_a_view_of_sql_is_computed_when_it_is_collected(
    tmp_path: Path, ask: Callable[[pl.LazyFrame], pl.LazyFrame]
):
    write_store(tmp_path / "s", trajectory("v", "A a B", success=True, task_id="t9"))
    lazy = ask(graphcredit.scan(tmp_path / "s", "groups").sort("task_id"))
    write_store(tmp_path / "s", worked_example(), iteration=1)
    assert lazy.collect()["task_id"].to_list() == ["t0"]


def test_an_empty_store_has_empty_views(tmp_path: Path):
    create_store(tmp_path / "s")
    for view in VIEW_NAMES:
        assert graphcredit.scan(tmp_path / "s", view).collect().height == 0


def test_a_view_that_is_not_there_is_refused(store: Store):
    with pytest.raises(OptionError, match="no view is called 'step'; there are steps, credit"):
        graphcredit.scan(store, "step")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    write_store(tmp_path / "s", worked_example())
    (path,) = (tmp_path / "s").rglob("*.parquet")
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(SchemaError, match=r"w0-000000\.parquet"):
        graphcredit.scan(tmp_path / "s")
