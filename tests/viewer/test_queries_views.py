"""The views that the viewer asks: opened once, bounded, fresh, and clear about damage."""

from pathlib import Path

import pytest

from graphcredit.store import Store
from graphcredit.store.errors import QueryRefusedError
from graphcredit.store.sql.catalog import Connection, connect
from graphcredit.viewer.queries import views
from graphcredit.viewer.queries.views import answer, columns
from tests.viewer.stores import two_tasks
from tests.worlds import trajectory, write_store


def count(store: Store) -> int:
    return answer(store, "SELECT count(*) FROM steps", run_id="r0", iteration=0)[0][0].as_py()


def test_views_stay_open_until_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[int | None] = []

    def counted(store: Store, *, run_id: str, iteration: int | None) -> Connection:
        opened.append(iteration)
        return connect(store, run_id=run_id, iteration=iteration)

    monkeypatch.setattr(views, "connect", counted)
    store = write_store(tmp_path / "s", two_tasks())
    assert (count(store), count(store)) == (12, 12)
    assert "state_id" in columns(store, "credit", run_id="r0", iteration=0)
    assert len(opened) == 1
    write_store(tmp_path / "s", two_tasks(), trajectory("late", "A a B"))
    assert (count(store), len(opened)) == (13, 2)


def test_a_kept_table_is_computed_once_until_a_file_changes(tmp_path: Path):
    def drawn(store: Store) -> float:
        once = {"drawn": "SELECT random() AS number"}
        return answer(store, "FROM drawn", run_id="r0", iteration=0, tables=once)[0][0].as_py()

    store = write_store(tmp_path / "s", two_tasks())
    first = drawn(store)
    assert drawn(store) == first
    write_store(tmp_path / "s", two_tasks(), trajectory("late", "A a B"))
    assert drawn(store) != first


def test_memory_is_bounded(tmp_path: Path):
    store = write_store(tmp_path / "s", two_tasks())
    limit = "SELECT current_setting('memory_limit')"
    assert answer(store, limit, run_id="r0", iteration=0)[0][0].as_py() == "1.0 GiB"


def test_a_shard_that_is_damaged_inside_is_an_error_of_ours(tmp_path: Path):
    store = write_store(tmp_path / "s", two_tasks())
    path = store.shards()[0].path
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)  # the first page of data; the footer is whole
    path.write_bytes(content)
    with pytest.raises(QueryRefusedError, match="DuckDB refused"):
        answer(store, "SELECT DISTINCT task_id FROM steps", run_id="r0", iteration=0)
