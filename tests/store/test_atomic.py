"""Temporary files: whole or not there, and swept when their writer is dead."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.embedding.cache import CachedEmbedder
from graphcredit.credit.stage import assign_credit
from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import atomic_directory, atomic_path, remove_left_overs
from graphcredit.store.files.tables import parquet_writer
from tests.store.full_disk import full_disk
from tests.worlds import worked_example, write_store

LEFT_OVER = ".0a1b2c3d.tmp"
"""What a name ends in whose writer was killed."""


def test_the_next_writer_removes_what_a_dead_one_left_and_nothing_else(tmp_path: Path):
    path = tmp_path / "a.csv"
    others = {"a.csv.tmp", "a.csv.backup.tmp", f"b.csv{LEFT_OVER}", f"a.csv{LEFT_OVER}.txt"}
    for name in (*others, f"a.csv{LEFT_OVER}"):
        (tmp_path / name).write_text("half")
    with atomic_path(path) as temporary:
        temporary.write_text("whole")
    assert {found.name for found in tmp_path.iterdir()} == {"a.csv", *others}


def test_two_live_writers_leave_each_other_alone(tmp_path: Path):
    path = tmp_path / "a.csv"
    with atomic_path(path) as first:
        first.write_text("first")
        with atomic_path(path) as second:
            second.write_text("second")
        assert path.read_text() == "second"
        assert remove_left_overs(tmp_path, str) == []
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_directories_are_swept_alike_once_the_new_one_is_there(tmp_path: Path):
    left = tmp_path / f"model{LEFT_OVER}"
    left.mkdir()
    (left / "weights").write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_directory(tmp_path / "model"):
        raise ZeroDivisionError
    assert (left / "weights").exists()
    with atomic_directory(tmp_path / "model") as temporary:
        (temporary / "weights").write_text("new")
        assert remove_left_overs(tmp_path, str) == [left]
        left.mkdir()
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


def test_a_directory_that_was_filled_meanwhile_is_not_replaced(tmp_path: Path):
    def fill_meanwhile() -> None:
        with atomic_directory(tmp_path / "out", may_replace=False):
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "mine").touch()

    with pytest.raises(InputError, match="something was written to it meanwhile"):
        fill_meanwhile()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine"]


def test_every_stage_sweeps_the_places_that_it_writes_to(tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    places = [
        store.history_path("r0"),
        store.graph_dir("r0", 0) / "nodes.parquet",
        store.shards()[0].credit_path,
    ]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.with_name(place.name + LEFT_OVER).write_bytes(b"half")
    assign_credit(store, CreditSettings(estimators=configure(["spo3"])))
    assert list(store.root.rglob("*.tmp")) == []
    assert {place.exists() for place in places[:2]} == {True}


class _Lengths:
    identity = "lengths"

    def embed(self, texts: list[str]) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
        return np.array([[len(text), 1.0] for text in texts], np.float32)


def test_vectors_sweep_what_was_left_under_names_that_never_return(tmp_path: Path):
    store = write_store(tmp_path / "store", worked_example())
    embedder = CachedEmbedder(store, _Lengths())
    assert embedder.embed(["a"]).tolist() == [[1.0, 1.0]]
    (vectors,) = store.root.glob("embeddings/*/*.parquet")
    left = vectors.with_name(f"0123456789abcdef.parquet{LEFT_OVER}")
    left.write_bytes(b"half")
    assert embedder.embed(["bb"]).tolist() == [[2.0, 1.0]]
    assert not left.exists()


def test_a_writer_that_failed_says_no_more_when_it_is_forgotten(tmp_path: Path):
    path = tmp_path / "t.parquet"
    writer = parquet_writer(path, pa.schema({"number": pa.int64()}))
    writer.write_table(pa.table({"number": [1]}))
    with full_disk(), pytest.raises(OSError, match="Error"):
        writer.close()
    path.unlink()
    writer.__del__()
    assert not path.exists()


def test_a_writer_that_nobody_closed_says_nothing_when_it_is_forgotten(tmp_path: Path):
    path = tmp_path / "t.parquet"
    writer = parquet_writer(path, pa.schema({"number": pa.int64()}))
    writer.write_table(pa.table({"number": [1]}))
    path.unlink()
    writer.__del__()
    assert not path.exists()
    assert not writer.is_open
