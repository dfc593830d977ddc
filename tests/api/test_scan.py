"""`scan`: the rows of every view are those of SQL, and filters reach the files."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

import graphcredit
from graphcredit.store import Store, connect, create_store
from graphcredit.store.errors import InputError, OptionError, SchemaError
from graphcredit.store.sql.views import VIEW_NAMES
from tests.examples import nightly
from tests.worlds import step_table, trajectory, worked_example, write_store


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


def by_sql(store: Store, sql: str) -> pl.DataFrame:
    with connect(store) as connection:
        return pl.DataFrame(connection.sql(sql).to_arrow_table())


def test_every_view_has_the_rows_and_types_of_sql(store: Store):
    with connect(store) as connection:
        for view in VIEW_NAMES:
            lazy = graphcredit.scan(store, view)
            expected = pl.DataFrame(connection.sql(f"FROM {view}").to_arrow_table())
            assert lazy.collect_schema() == expected.schema, view
            assert_frame_equal(lazy.collect(), expected, check_row_order=False)


@pytest.mark.parametrize(
    ("run_id", "iteration"), [nightly("r1", None), nightly(None, 12), ("r0", 12)]
)
def test_a_run_or_an_iteration_can_be_asked_for(
    store: Store, run_id: str | None, iteration: int | None
):
    with connect(store, run_id=run_id, iteration=iteration) as connection:
        for view in VIEW_NAMES:
            expected = pl.DataFrame(connection.sql(f"FROM {view}").to_arrow_table())
            found = graphcredit.scan(store, view, run_id=run_id, iteration=iteration)
            shared = [name for name in expected.columns if name in found.collect_schema()]
            assert_frame_equal(found.collect().select(shared), expected, check_row_order=False)


def test_a_filter_reaches_the_files(store: Store):
    lazy = graphcredit.scan(store).filter(pl.col("run_id") == "r1", pl.col("reward") > 1)
    plan = lazy.select("state", "grpo_advantage").explain()
    assert "run_id=r1" in plan
    assert "run_id=r0" not in plan
    assert 'col("reward")' in plan.partition("SELECTION:")[2].splitlines()[0]
    assert "observation" not in plan
    (row,) = lazy.select("state", "grpo_advantage").collect().rows()
    assert row[0] == "C"
    assert row[1] == pytest.approx(2 / 3**0.5, rel=1e-2)


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


def test_files_of_other_writers_get_the_types_of_the_view(tmp_path: Path):
    store = create_store(tmp_path / "s")
    folder = tmp_path / "s" / "steps" / "run_id=r0" / "iteration=3"
    folder.mkdir(parents=True)
    table = step_table(worked_example()).drop_columns(["thought", "observation"])
    table = table.set_column(0, "task_id", table["task_id"].dictionary_encode())
    table = table.set_column(2, "step_index", table["step_index"].cast(pa.int64()))
    table = table.append_column("mine", pa.array([1] * 8))
    pq.write_table(table.append_column("run_id", pa.array(["other"] * 8)), folder / "a.parquet")
    pq.write_table(step_table(trajectory("w", "A a B", success=True)), folder / "b.parquet")
    found = graphcredit.scan(store, "steps").collect()
    assert found.schema == by_sql(store, "FROM steps").schema
    assert_frame_equal(found, by_sql(store, "FROM steps"), check_row_order=False)
    assert found["run_id"].unique().to_list() == ["r0"]


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


def test_a_folder_above_the_store_may_not_look_like_one_of_the_store(tmp_path: Path):
    write_store(tmp_path / "run_id=zz" / "s", worked_example())
    with pytest.raises(InputError, match="no folder above a store may be called run_id=…"):
        graphcredit.scan(tmp_path / "run_id=zz" / "s")
