"""The views have the schema's columns and types, and say what docs/store.md says."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.store import Store, create_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import PathError, QueryRefusedError, SchemaError, StoreFormatError
from graphcredit.store.schema import CREDIT_COLUMNS, STEP_COLUMNS
from graphcredit.store.sql.catalog import connect, run_trusted_query
from graphcredit.store.sql.sandbox import run_query
from graphcredit.store.sql.views import VIEW_NAMES, duckdb_type
from tests.examples import examples
from tests.store.whole_store import CREDIT, STEPS, change_table, whole_store
from tests.worlds import step_table, trajectory, worked_example, write_store

_SHOWN = [column for column in STEP_COLUMNS if column.name != "images"]


def _rows(store: Store, sql: str) -> list[dict[str, Any]]:
    return run_trusted_query(store, sql).table.to_pylist()


def test_every_view_is_there_and_empty_before_the_first_file(tmp_path: Path):
    store = create_store(tmp_path / "store")
    for name in VIEW_NAMES:
        assert _rows(store, f"FROM {name}") == []


def test_a_store_cannot_be_made_below_a_file(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(PathError, match="name another path"):
        create_store(tmp_path / "file" / "store")


def test_columns_are_the_schemas_with_the_partition_first(tmp_path: Path):
    store = create_store(tmp_path / "store")
    columns = [(row["column_name"], row["column_type"]) for row in _rows(store, "DESCRIBE steps")]
    assert columns[:2] == [("run_id", "VARCHAR"), ("iteration", "INTEGER")]
    assert columns[2:] == [(c.name, duckdb_type(c.type)) for c in _SHOWN]


def test_a_shard_without_nullable_columns_and_one_of_other_types_read_alike(tmp_path: Path):
    store = write_store(tmp_path / "store", trajectory("x", "A a B", thought="why"))
    table = step_table(trajectory("y", "A a B")).drop_columns(["thought", "prompt_ids"])
    wide = table.set_column(2, "step_index", table["step_index"].cast(pa.int64()))
    wide = wide.append_column("mood", pa.array(["glad"]))
    pq.write_table(wide, store.root / STEPS.replace("w0", "w7"))
    rows = _rows(store, "SELECT trajectory_id, thought FROM steps ORDER BY 1")
    assert rows == [
        {"trajectory_id": "x", "thought": "why"},
        {"trajectory_id": "y", "thought": None},
    ]
    described = _rows(store, "DESCRIBE steps")
    assert len(described) == 2 + len(_SHOWN)
    assert {"step_index": "INTEGER"}.items() <= {
        row["column_name"]: row["column_type"] for row in described
    }.items()


def test_runs_and_iterations_come_from_the_path(tmp_path: Path):
    root = tmp_path / "a [strange]*? 'path'"
    for run_id, iteration in (("2026-01-01", 3), ("7", 12)):
        store = write_store(root, trajectory("x", "A a B"), run_id=run_id, iteration=iteration)
    rows = _rows(store, "SELECT run_id, iteration FROM steps ORDER BY iteration")
    assert rows == [{"run_id": "2026-01-01", "iteration": 3}, {"run_id": "7", "iteration": 12}]


@pytest.mark.parametrize("above", ["run_id=zzz", "iteration=7", "temperature=0.7", "reward=dense"])
def test_folders_above_the_store_are_no_columns(tmp_path: Path, above: str):
    steps = trajectory("x", "A a B", temperature=1.5)
    store = write_store(tmp_path / above / "store", steps, run_id="r1", iteration=3)
    rows = _rows(store, "SELECT run_id, iteration, temperature, reward FROM steps")
    assert rows == [{"run_id": "r1", "iteration": 3, "temperature": 1.5, "reward": 0.0}]
    locked = run_query(store, "SELECT run_id, iteration, temperature, reward FROM steps")
    assert locked.table.to_pylist() == rows


def test_text_that_a_writer_left_as_bytes_is_text(tmp_path: Path):
    store = write_store(tmp_path / "store", trajectory("x", "A a B"))
    text = 'Küche\n"a"'
    table = step_table(trajectory("x", "A a B"))
    for name, values in (
        ("state", pa.array([text.encode()])),
        ("admissible_actions", pa.array([[text.encode()]])),
    ):
        table = table.set_column(table.schema.get_field_index(name), name, values)
    pq.write_table(table.replace_schema_metadata(None), store.shards()[0].path, store_schema=False)
    sql = "SELECT state, admissible_actions FROM steps"
    expected = [{"state": text, "admissible_actions": [text]}]
    assert _rows(store, sql) == expected
    assert run_query(store, sql).table.to_pylist() == expected
    assert next(iter(read_steps(store))).select(["state"]).to_pylist() == [{"state": text}]
    assert check_store(store).errors == ()


def test_a_connection_for_a_statement_has_the_views_that_it_names(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    for shard in store.shards():
        shard.credit_path.write_bytes(b"damaged")
    for sql, views in (("FROM trajectories", ["steps", "trajectories"]), ("FROM Nodes", ["nodes"])):
        with connect(store, sql=sql) as connection:
            shown = connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal")
            assert sorted(name for (name,) in shown.fetchall()) == views
            assert connection.sql(sql).to_arrow_table().num_rows > 0
    with pytest.raises(SchemaError):
        connect(store, sql="FROM enriched")


def test_enriched_keeps_steps_without_credit(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    change_table(CREDIT, lambda credit: credit.slice(0, 8))(store.root)
    rows = _rows(store, "SELECT count(*) AS steps, count(state_id) AS credited FROM enriched")
    assert rows == [{"steps": 10, "credited": 8}]


def test_credit_has_the_columns_of_the_estimators_that_ran(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    change_table(
        CREDIT,
        lambda credit: credit.append_column("grpo_advantage", pa.array([0.5] * 10, pa.float32())),
    )(store.root)
    names = [row["column_name"] for row in _rows(store, "DESCRIBE credit")]
    expected = ["run_id", "iteration", *(c.name for c in CREDIT_COLUMNS), "grpo_advantage"]
    assert names == expected


def test_trajectories_of_the_worked_example(tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    rows = _rows(
        store,
        "SELECT trajectory_id, num_steps, return, success, is_complete, terminated, truncated "
        "FROM trajectories ORDER BY trajectory_id",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("x", 4, 10.0, True, True, True, False),
        ("y", 2, 0.0, False, True, False, True),
        ("z", 2, -0.1, False, True, False, True),
    ]


def test_groups_of_the_worked_example(tmp_path: Path):
    dead = trajectory("dead", "A a B", success=None)
    store = write_store(tmp_path / "store", [*worked_example(), *dead])
    (row,) = _rows(store, "FROM groups")
    assert row.pop("mean_return") == pytest.approx(9.9 / 3)
    assert row.pop("success_rate") == pytest.approx(1 / 3)
    assert row == {
        "run_id": "r0",
        "iteration": 0,
        "task_id": "t0",
        "num_trajectories": 3,
        "num_incomplete": 1,
        "is_degenerate": False,
        "num_steps": 9,
    }


def test_a_group_of_equal_returns_is_degenerate(tmp_path: Path):
    rows = [*trajectory("x", "A a B"), *trajectory("y", "A a B b C", rewards=[1, -1])]
    store = write_store(tmp_path / "store", rows)
    assert _rows(store, "SELECT is_degenerate FROM groups") == [{"is_degenerate": True}]


INCOMPLETE = {
    "no end": trajectory("x", "A a B b C", success=None),
    "a step is missing": [trajectory("x", "A a B b C c D")[i] for i in (0, 2)],
    "the first step is missing": trajectory("x", "A a B b C")[1:],
    "a broken chain": [*trajectory("x", "A a B b C")[:1], *trajectory("x", "A a Z b C")[1:]],
    "an end too early": [row | {"truncated": True} for row in trajectory("x", "A a B b C")],
    "an outcome too early": [row | {"success": True} for row in trajectory("x", "A a B b C")],
    "an outcome without end": [row | {"truncated": False} for row in trajectory("x", "A a B")],
    "a reward that is no number": trajectory("x", "A a B", rewards=[float("nan")]),
    "an endless reward": trajectory("x", "A a B", rewards=[float("inf")]),
    "a step for nothing": trajectory("x", "A a B b C", cost=0.0),
    "a step twice": [trajectory("x", "A a B b C")[i] for i in (0, 1, 1)],
}


@pytest.mark.parametrize("rows", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_what_breaks_the_definition_is_not_complete(tmp_path: Path, rows: list[dict[str, Any]]):
    store = write_store(tmp_path / "store", rows)
    assert _rows(store, "SELECT is_complete FROM trajectories") == [{"is_complete": False}]


def _is_complete(rows: list[dict[str, Any]]) -> bool:
    """The definition of docs/store.md, word for word."""
    rows = sorted(rows, key=lambda row: row["step_index"])
    last = [False] * (len(rows) - 1) + [True]
    return (
        [row["step_index"] for row in rows] == list(range(len(rows)))
        and all(a["next_state"] == b["state"] for a, b in pairwise(rows))
        and [row["terminated"] or row["truncated"] for row in rows] == last
        and all(row["success"] is None for row in rows[:-1])
    )


_END = {"terminated": False, "truncated": False, "success": None}


@st.composite
def _trajectories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a sound trajectory, of which up to two values are then changed."""
    words = draw(st.lists(st.sampled_from("AB"), min_size=2, max_size=4))
    path = " a ".join(words).split()
    rows = [_END | row for row in trajectory("x", path)]
    for _ in range(draw(st.integers(0, 2))):
        column, values = draw(
            st.sampled_from(
                [
                    ("step_index", [0, 1, 2]),
                    ("state", ["A", "B"]),
                    ("next_state", ["A", "B"]),
                    ("truncated", [False, True]),
                    ("terminated", [False, True]),
                    ("success", [None, True]),
                ]
            )
        )
        draw(st.sampled_from(rows))[column] = draw(st.sampled_from(values))
    return draw(st.permutations(rows))


def test_a_chain_with_two_states_swapped_is_not_complete(tmp_path: Path):
    broken = trajectory("x", "A a B a A a A")
    broken[1]["state"], broken[2]["state"] = "A", "B"
    store = write_store(tmp_path / "store", broken)
    assert _rows(store, "SELECT is_complete FROM trajectories") == [{"is_complete": False}]


@settings(max_examples=examples(40))
@given(st.lists(_trajectories(), min_size=1, max_size=12))
def test_completeness_is_that_of_the_slow_definition(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[list[dict[str, Any]]]
):
    named = {f"t{number}": rows for number, rows in enumerate(drawn)}
    steps = [row | {"trajectory_id": name} for name, rows in named.items() for row in rows]
    store = write_store(tmp_path_factory.mktemp("stores") / "store", steps)
    found = _rows(store, "SELECT trajectory_id, is_complete FROM trajectories")
    assert {row["trajectory_id"]: row["is_complete"] for row in found} == {
        name: _is_complete(rows) for name, rows in named.items()
    }


@pytest.mark.parametrize(
    ("folder", "odd"),
    [
        ("steps/run_id=r0/iteration=000000_old", "iteration=000000_old"),
        ("steps/run_id=r0/iteration=1700000000000", "iteration=1700000000000"),
        ("steps/run_id=my run/iteration=000000", "run_id=my run"),
        ("credit/run_id=r0/iteration=x", "iteration=x"),
        ("history/run_id=my run", "run_id=my run"),
    ],
)
def test_files_of_no_run_or_iteration_are_named(tmp_path: Path, folder: str, odd: str):
    store = write_store(tmp_path / "s", worked_example())
    (store.root / folder).mkdir(parents=True)
    assert _rows(store, "SELECT count(*) AS n FROM steps") == [{"n": 8}]
    pq.write_table(step_table(worked_example()), store.root / folder / "w.parquet")
    for run in (run_trusted_query, run_query):
        with pytest.raises(StoreFormatError, match=rf"must be called .*{odd}\. Rename it"):
            run(store, "SELECT 1")
    if folder.startswith("steps"):
        with pytest.raises(StoreFormatError, match="must be called"):
            store.shards()
    assert "path_name" in {error.rule.name for error in check_store(store).errors}


def test_trusted_sql_may_do_anything_and_says_what_failed(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    target = tmp_path / "out.csv"
    run_trusted_query(store, f"COPY (SELECT 1 AS one) TO '{target}'; SELECT 2")
    assert target.read_text() == "one\n1\n"
    result = run_trusted_query(store, "FROM steps", max_rows=3)
    assert (result.table.num_rows, result.is_cut, result.num_left_out) == (3, True, 7)
    with pytest.raises(QueryRefusedError, match="nope"):
        run_trusted_query(store, "SELECT nope FROM steps")


def test_a_folder_that_cannot_be_listed_does_not_pass_for_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = write_store(tmp_path / "store", worked_example())

    def refused(path: Path) -> None:
        raise PermissionError(
            13, "Permission denied", str(path)
        )  # root may read all, so that no mode would do

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(StoreFormatError, match=r"must be readable: .*steps: Permission denied"):
        store.shards()
