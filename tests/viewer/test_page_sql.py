"""The SQL page: what it answers, and what it refuses."""

from pathlib import Path

import pytest

from graphcredit.store import Store, create_store
from graphcredit.store.sql.sandbox import run_query
from graphcredit.viewer.pages import sql as page
from graphcredit.viewer.pages.sql import READY
from tests.viewer.browser import markdown_of, open_page
from tests.viewer.stores import Shared, two_tasks

SHARD = "steps/run_id=r0/iteration=000000/w0-000000.parquet"

_ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 1"

HOSTILE = {
    "overwrites a shard": "WITH x AS (COPY (SELECT 1) TO '{shard}' "
    "(FORMAT parquet, USE_TMP_FILE false)) SELECT * FROM x",
    "reads a file": "SELECT * FROM read_text('/etc/passwd')",
    "changes a setting": "SET enable_external_access = true",
    "two at a time": "SELECT 1; SELECT 2",
}


@pytest.fixture
def store(shared: Shared) -> Store:
    return shared(two_tasks)


def test_a_query_in_the_address_is_answered(store: Store):
    query = "SELECT task_id, success_rate FROM groups ORDER BY task_id"
    app = open_page(store, "sql", q=query)
    assert app.text_area[0].value == query
    assert app.dataframe[0].value.values.tolist() == [["t0", 1 / 3], ["t1", 0.0]]
    assert "2 rows in" in markdown_of(app)


def test_a_query_that_is_typed_gets_into_the_address(store: Store):
    app = open_page(store, "sql")
    assert len(app.dataframe) == 0
    app.text_area[0].input("SELECT count(*) AS n FROM steps")
    app.button[0].click().run()
    assert app.query_params["q"] == "SELECT count(*) AS n FROM steps"
    assert app.dataframe[0].value["n"].tolist() == [12]
    assert app.button[0].proto.shortcut.lower() == "ctrl+enter"


@pytest.mark.slow
def test_every_query_that_is_typed_is_run_and_an_empty_one_asks_nothing(store: Store):
    app = open_page(store, "sql", q="SELECT 0 AS n")
    for number in (1, 2, 3, 3):
        app.text_area[0].input(f"SELECT {number} AS n")
        app.button[0].click().run()
        assert app.text_area[0].value == app.query_params["q"] == f"SELECT {number} AS n"
        assert app.dataframe[0].value["n"].tolist() == [number]
    app.text_area[0].input("  ")
    app.button[0].click().run()
    assert len(app.dataframe) == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("title", READY)
def test_a_ready_query_runs(store: Store, title: str):
    assert run_query(store, READY[title]).table.num_columns > 1


def test_a_ready_query_is_chosen_and_shown(store: Store):
    app = open_page(store, "sql")
    app.selectbox(key="ready").select("Failed rollouts").run()
    assert app.text_area[0].value == READY["Failed rollouts"]
    assert sorted(app.dataframe[0].value["trajectory_id"]) == ["p", "q", "y", "z"]


@pytest.mark.one_in(4, others="nightly")
@pytest.mark.parametrize("sql", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_query_is_refused_and_changes_nothing(store: Store, sql: str):
    before = (store.root / SHARD).read_bytes()
    app = open_page(store, "sql", q=sql.format(shard=store.root / SHARD))
    assert [error.value for error in app.error] == ["The query has no result:"]
    assert len(app.dataframe) == 0
    assert "root:" not in app.code[0].value
    assert (store.root / SHARD).read_bytes() == before


def test_a_query_without_end_is_stopped(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "_SECONDS", 0.5)
    app = open_page(store, "sql", q=_ENDLESS)
    assert "must finish within 0.5 s" in app.code[0].value


def test_an_error_that_quotes_markup_stays_text(store: Store):
    app = open_page(store, "sql", q="SELECT '![x](https://example.org/x.png)'::INT")
    assert "![x]" not in markdown_of(app)
    assert "![x](https://example.org/x.png)" in app.code[0].value


def test_what_is_left_out_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "_MAX_ROWS", 5)
    app = open_page(store, "sql", q="FROM steps")
    assert "There are 7 more" in markdown_of(app)


def test_columns_of_one_name_are_told_apart(store: Store):
    app = open_page(store, "sql", q='SELECT 1 AS a, 2 AS a, 3 AS "a\x1b"')
    assert app.dataframe[0].value.columns.tolist() == ["a", "a (2)", "a␛"]


@pytest.mark.slow
def test_values_of_any_type_are_shown(store: Store):
    values = (
        "NULL, [1, NULL], {'a': [1.5]}, MAP {'k': 1}, 1::HUGEINT, INTERVAL 3 DAY, 'x'::BLOB, "
        "TIMESTAMPTZ '2026-01-01 00:00:00+00', DATE '2026-01-01', 1.5::DECIMAL(9, 2), uuid(), "
        "union_value(a := 1)"
    )
    app = open_page(store, "sql", q=f"SELECT {values}")
    assert not app.error
    assert app.dataframe[0].value.shape == (1, 12)


def test_a_date_that_python_does_not_have_is_shown(store: Store):
    query = "SELECT DATE '20000-01-01' AS d"
    app = open_page(store, "sql", q=query)
    assert len(app.dataframe) == 1


def test_an_empty_store_can_be_asked_too(tmp_path: Path):
    app = open_page(create_store(tmp_path / "s"), "sql", q="FROM steps")
    assert len(app.dataframe[0].value) == 0
