"""A stranger's SQL reads the views, within limits, and can do nothing else."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.audit.run import audit
from graphcredit.store import Store, create_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import OptionError, QueryRefusedError, SchemaError
from graphcredit.store.sql import sandbox
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.store.sql.sandbox import MIB, run_query
from graphcredit.store.sql.views import VIEW_NAMES, identifier, named_views
from tests.store.whole_store import CREDIT, STEPS, whole_store
from tests.worlds import step_table, trajectory

HOSTILE: dict[str, str] = {
    "read_text": "SELECT * FROM read_text('/etc/passwd')",
    "read_blob": "SELECT * FROM read_blob('{steps}')",
    "read_csv": "SELECT * FROM read_csv('/etc/passwd')",
    "read_json": "SELECT * FROM read_json('{root}/store.json')",
    "read_parquet": "SELECT * FROM read_parquet('{steps}')",
    "file as table": "SELECT * FROM '{steps}'",
    "glob": "SELECT * FROM glob('/etc/*')",
    "attach": "ATTACH '{root}/evil.duckdb' AS evil",
    "copy to": "COPY (SELECT 1) TO '{root}/evil.csv'",
    "copy over a shard": "COPY (SELECT 1) TO '{steps}' (FORMAT parquet, USE_TMP_FILE false)",
    "copy in a CTE": "WITH x AS (COPY (SELECT 1) TO '{steps}' (FORMAT parquet, USE_TMP_FILE false))"
    " SELECT * FROM x",
    "insert in a CTE": "WITH x AS (INSERT INTO steps SELECT * FROM steps RETURNING *) FROM x",
    "explain analyze copy": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{steps}' (USE_TMP_FILE false)",
    "export": "EXPORT DATABASE '{root}/evil'",
    "install": "INSTALL httpfs",
    "load": "LOAD httpfs",
    "set": "SET enable_external_access = true",
    "reset": "RESET lock_configuration",
    "pragma": "PRAGMA enable_profiling",
    "pragma call": "CALL pragma_database_size()",
    "two statements": "SELECT 1; SELECT 2",
    "hidden statement": "SELECT 1; COPY (SELECT 1) TO '{root}/evil.csv'",
    "no statement": "-- nothing",
    "create": "CREATE TABLE t AS SELECT 1",
    "drop": "DROP VIEW steps",
    "delete": "DELETE FROM steps",
    "environment": "SELECT getenv('HOME')",
    "python table": "SELECT * FROM secret",
    "arrow pointer": "SELECT * FROM arrow_scan(1::UBIGINT, 2::UBIGINT, 3::UBIGINT)",
    "unknown column": "SELECT nope FROM steps",
    "syntax": "SELEC 1",
}


def _files(store: Store) -> dict[str, bytes]:
    paths = (path for path in store.root.rglob("*") if path.is_file())
    return {path.relative_to(store.root).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return whole_store(tmp_path_factory.mktemp("sandbox") / "store")


@pytest.mark.parametrize("sql", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_statement_is_refused_and_changes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, sql: str
):
    monkeypatch.setattr(sandbox, "secret", pa.table({"a": [1]}), raising=False)
    before = _files(store)
    with pytest.raises(QueryRefusedError):
        run_query(store, sql.format(root=store.root, steps=store.root / STEPS))
    assert _files(store) == before


_COPY = "COPY (SELECT 1) TO '{target}' (FORMAT csv, USE_TMP_FILE false)"
_NAMES = (
    "x) IS NOT NULL; " + _COPY + "; SELECT (1 --_advantage",
    'x" AS FLOAT) AS "x" FROM (SELECT 1 AS "x")); ' + _COPY + "; SELECT 1 --_advantage",
    "it's {{odd}}-here_advantage",
)


def test_a_column_is_a_name_whatever_it_says(tmp_path: Path):
    target = tmp_path / "evil.csv"
    names = [name.format(target=target) for name in _NAMES]
    store = whole_store(tmp_path / "store")
    credit = store.root / CREDIT
    table = pq.read_table(credit, partitioning=None)
    values = pa.array([0.5] * table.num_rows, pa.float32())
    for name in names:
        table = table.append_column(name, values)
    pq.write_table(table, credit)
    sql = f"SELECT {', '.join(map(identifier, names))} FROM enriched WHERE trajectory_id = 'x'"
    for run in (run_query, run_trusted_query):
        assert run(store, sql).table.to_pydict() == dict.fromkeys(names, [0.5] * 4)
    assert not any("readable" in error.rule.name for error in check_store(store).errors)
    audit(store)
    assert not target.exists()


@pytest.mark.parametrize("name", ["copy over a shard", "copy in a CTE"])
def test_without_the_locks_the_statement_does_destroy_a_shard(tmp_path: Path, name: str):
    """What is refused above is a real danger, not a mistake in the statement."""
    store = whole_store(tmp_path / "store")
    run_trusted_query(store, HOSTILE[name].format(root=store.root, steps=store.root / STEPS))
    assert pq.read_table(store.root / STEPS, partitioning=None).num_rows == 1


def test_a_query_without_end_is_stopped_in_time(store: Store):
    sql = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 1"
    with pytest.raises(QueryRefusedError, match=r"must finish within 0\.5 s"):
        run_query(store, sql, seconds=0.5)


def test_a_query_that_wants_all_memory_is_stopped(store: Store):
    with pytest.raises(QueryRefusedError, match="more than 64 MiB of memory"):
        run_query(store, "SELECT list(i) FROM range(100000000) t(i)", memory=64 * MIB)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("sql", "num_rows"),
    [
        ("SELECT repeat('x', 100000) FROM range(600)", 600),
        ("SELECT i, hash(i) FROM range(3000000) t(i)", 3_000_000),
        ("SELECT i, hash(i) AS h FROM range(1200000) t(i) ORDER BY h", 1_200_000),
    ],
)
def test_a_query_that_just_fits_is_answered(store: Store, sql: str, num_rows: int):
    table = run_query(store, sql, max_rows=None, memory=64 * MIB).table
    assert table.num_rows == num_rows


def test_an_error_amid_the_rows_is_one_refusal(store: Store):
    sql = "SELECT CASE WHEN i < 5000 THEN 1 ELSE error('stop here') END FROM range(9000) t(i)"
    with pytest.raises(QueryRefusedError, match=r"DuckDB refused the query: .*stop here"):
        run_query(store, sql, max_rows=None)


def test_a_result_larger_than_the_memory_limit_is_refused(store: Store):
    sql = "SELECT repeat('x', 100000) FROM range(10000)"
    with pytest.raises(QueryRefusedError, match="more than 64 MiB of memory"):
        run_query(store, sql, max_rows=None, memory=64 * MIB)


@pytest.mark.parametrize("is_empty", [False, True])
def test_every_view_reads_as_with_a_trusted_connection(
    store: Store, tmp_path: Path, is_empty: bool
):
    asked = create_store(tmp_path / "store") if is_empty else store
    columns = ", ".join(f"{name}.*" for name in VIEW_NAMES)
    sorted_views = (f"(FROM {name} ORDER BY ALL) AS {name}" for name in VIEW_NAMES)
    sql = f"SELECT {columns} FROM {' POSITIONAL JOIN '.join(sorted_views)}"
    expected = run_trusted_query(asked, sql).table
    assert (expected.num_rows == 0) is is_empty
    assert run_query(asked, sql).table.equals(expected)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM steps SELECT task_id",
        "WITH x AS (SELECT 1 AS one) SELECT one FROM x",
        "PIVOT steps ON is_action_valid USING count(*) GROUP BY trajectory_id",
        "DESCRIBE steps",
        "SUMMARIZE groups",
        "SHOW TABLES",
        "VALUES (1), (2)",
        "SELECT 'a; b' -- two? ; no",
    ],
)
def test_statements_that_only_read_are_allowed(store: Store, sql: str):
    assert run_query(store, sql).table.num_rows > 0


def test_rows_that_are_left_out_are_counted(store: Store):
    result = run_query(store, "FROM range(10000)", max_rows=3)
    assert result.table.to_pydict() == {"range": [0, 1, 2]}
    assert (result.is_cut, result.num_left_out) == (True, 9997)
    whole = run_query(store, "FROM range(3)", max_rows=3)
    assert (whole.is_cut, whole.num_left_out) == (False, 0)


@pytest.mark.slow
def test_counting_ends_when_half_of_the_time_is_used(store: Store):
    result = run_query(store, "FROM range(100000000000)", max_rows=3, seconds=4)
    assert result.table.num_rows == 3
    assert (result.is_cut, result.num_left_out) == (True, None)


def test_shards_of_other_layouts_and_odd_paths_read_alike(tmp_path: Path):
    store = whole_store(tmp_path / "a [strange]*? 'path'")
    table = step_table(trajectory("other", "A a B")).drop_columns(["thought"])
    for column, values in (
        ("step_index", table["step_index"].cast(pa.int64())),
        ("state", table["state"].dictionary_encode()),
        ("task_id", table["task_id"].cast(pa.large_string())),
        ("extra", pa.nulls(1)),
    ):
        table = table.set_column(table.schema.get_field_index(column), column, values)
    pq.write_table(
        table.append_column("run_id", pa.array(["not this"])),
        store.root / STEPS.replace("w0", "w9"),
    )
    sql = "SELECT run_id, iteration, state, task_id, thought, step_index FROM steps ORDER BY ALL"
    result = run_query(store, sql).table
    assert result.equals(run_trusted_query(store, sql).table)
    assert result.num_rows == 11
    assert set(result["run_id"].to_pylist()) == {"r0"}


def test_text_that_is_not_utf8_is_refused(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    table = pq.read_table(store.root / STEPS, partitioning=None)
    values = pa.array([b"\xff"] * table.num_rows)
    bad = pa.Array.from_buffers(pa.string(), table.num_rows, values.buffers())
    index = table.schema.get_field_index("thought")
    pq.write_table(table.set_column(index, "thought", bad), store.root / STEPS)
    with pytest.raises(QueryRefusedError, match=r"text must be UTF-8: .*graphcredit check"):
        run_query(store, "SELECT thought FROM steps")


def test_limits_out_of_range_are_refused(store: Store):
    with pytest.raises(OptionError, match="max_rows must be 1 or more"):
        run_query(store, "SELECT 1", max_rows=0)
    with pytest.raises(OptionError, match="seconds must be above 0"):
        run_query(store, "SELECT 1", seconds=0)
    with pytest.raises(OptionError, match="memory must be at least 64 MiB"):
        run_query(store, "SELECT 1", memory=MIB)


def test_a_query_opens_the_views_that_it_names(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    hidden = "SELECT count(*) AS n FROM query_table('st' || 'eps'), (SELECT 'nodes')"
    asked = run_query(store, "SELECT count(*) AS n FROM Steps").table
    assert run_query(store, hidden).table.equals(asked)
    for shard in store.shards():
        shard.credit_path.write_bytes(b"damaged")
    assert run_query(store, "SELECT count(*) AS n FROM Steps").table.equals(asked)
    for sql in ("FROM enriched", "FROM credit_state", hidden):
        with pytest.raises(SchemaError):
            run_query(store, sql)


def test_who_asks_about_views_is_told_of_all(store: Store):
    views = run_query(store, "SELECT view_name FROM duckdb_views() WHERE view_name <> 'steps'")
    assert {*views.table["view_name"].to_pylist()} >= {*VIEW_NAMES} - {"steps", "credit_state"}
    assert named_views("SELECT credit.state_id FROM enriched, credit_of") == {
        *("enriched", "steps", "credit")
    }
