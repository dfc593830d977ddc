"""Images of steps in the store: found or missed by the check, and in one view only."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphcredit.collector import StepRecorder
from graphcredit.collector.recording.spool_format import read_spool
from graphcredit.store import Store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import StepRefusedError
from graphcredit.store.sql.catalog import connect
from graphcredit.store.sql.sandbox import run_query
from tests.worlds import trajectory, write_store

_PIXELS = b"\x89PNG\x00\xff"


def _image(content: bytes | None = None, path: str | None = None) -> dict[str, Any]:
    return {"bytes": content, "path": path}


def _store(root: Path) -> Store:
    """Return a store of two trajectories: of one image by bytes and two by path, and of none."""
    seen, blind = trajectory("x", "A a B b C"), trajectory("y", "A a B")
    seen[0]["images"] = [_image(_PIXELS), _image(path="images/a.png")]
    seen[1]["images"] = [_image(path="images/b.png")]
    store = write_store(root, seen, blind)
    (root / "images").mkdir()
    for name in ("a.png", "b.png"):
        (root / "images" / name).write_bytes(_PIXELS)
    return store


def test_files_that_are_missing_are_told(tmp_path: Path):
    store = _store(tmp_path / "s")
    assert check_store(store).violations == ()
    (store.root / "images/b.png").unlink()
    (error,) = check_store(store).errors
    assert (error.rule.name, error.rows, error.num_rows) == ("image_file", (1,), 1)
    assert "found images/b.png; bring them back" in error.message
    (store.root / "images/a.png").unlink()
    (error,) = check_store(store).errors
    assert (error.rows, error.found) == ((0, 1), "images/a.png and 1 more")
    assert error.takes_out is None


def test_the_view_of_all_columns_reads_no_image(tmp_path: Path):
    store = _store(tmp_path / "s")
    expected = [
        ("x", 0, [_image(_PIXELS), _image(path="images/a.png")]),
        ("x", 1, [_image(path="images/b.png")]),
        ("y", 0, None),
    ]
    sql = "SELECT trajectory_id, step_index, images FROM step_images ORDER BY 1, 2"
    with connect(store) as connection:
        assert "images" not in connection.sql("FROM enriched LIMIT 0").columns
        assert connection.sql(sql).fetchall() == expected
    found = run_query(store, sql).table.to_pylist()
    assert [tuple(row.values()) for row in found] == expected


def test_a_shard_that_lacks_the_column_stands_beside_one_that_has_it(tmp_path: Path):
    store = _store(tmp_path / "s")
    path = store.shards()[1].path
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["images"]), path)
    assert {v.rule.name for v in check_store(store).violations} == set()
    with connect(store) as connection:
        query = "SELECT trajectory_id FROM step_images WHERE images IS NULL"
        assert connection.sql(query).fetchall() == [("y",)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"PNG", "images must be a list of images"),
        ([7], "images must be a list of images"),
        ([{"url": "x"}], "images must be a list of images"),
        (["a.png"], r"within images/, without . and ..: got "),
        ([{"bytes": b"x", "path": "images/a"}], "either bytes or a path"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, value: Any, reason: str):
    with (
        StepRecorder(tmp_path / "s", run_id="r0", iteration=0, worker_id="w") as recorder,
        recorder.trajectory(task_id="t") as steps,
        pytest.raises(StepRefusedError, match=reason),
    ):
        steps.log(state="A", action="a", next_state="B", reward=0.0, images=value)


def test_a_spool_has_the_images_of_a_step(tmp_path: Path):
    with (
        StepRecorder(tmp_path / "s", run_id="r0", iteration=0, worker_id="w") as recorder,
        recorder.trajectory(task_id="t") as steps,
    ):
        given = [_PIXELS, "images/a.png"]
        steps.log(state="A", action="a", next_state="B", reward=0.0, images=given)
        (spool,) = (tmp_path / "s/spool").glob("*.jsonl")
        (row,) = read_spool(spool).rows
    assert row["images"] == [_image(_PIXELS), _image(path="images/a.png")]
