"""A store is read wherever it lies, or refused in one line."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store, create_store, open_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import InputError, StoreFormatError
from graphcredit.store.parquet.export import export_store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.store.sql.sandbox import run_query
from graphcredit.viewer.queries.views import answer as in_viewer
from tests.worlds import trajectory, worked_example, write_store

ODD = ["back\\slash", "a\\*[b]?'c", "[abc]*?", 'it\'s "so"\n', " run_id=x;--{a,b}%20$HOME~"]
COUNT = """
    SELECT count(*) AS steps, count(grpo_advantage) AS credited FROM enriched
    WHERE run_id = 'r0' AND iteration = 0
"""
COUNTED = {"steps": [8], "credited": [8]}


def _sandboxed(store: Store) -> object:
    return run_query(store, COUNT).table.to_pydict()


def _checked(store: Store) -> object:
    report = check_store(store)
    return report.errors, report.num_steps


READERS: dict[str, tuple[Callable[[Store], object], object]] = {
    "read_steps": (lambda store: sum(table.num_rows for table in read_steps(store)), 8),
    "sandbox": (_sandboxed, COUNTED),
    "unlocked": (lambda store: run_trusted_query(store, COUNT).table.to_pydict(), COUNTED),
    "viewer": (lambda s: in_viewer(s, COUNT, run_id="r0", iteration=0).to_pydict(), COUNTED),
    "check": (_checked, ((), 8)),
    "audit": (lambda store: audit(store).numbers["group sizes"], {"3": 1}),
    "export": (lambda store: export_store(store, store.root / "out").num_steps, 8),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", ODD)
def test_every_reader_finds_the_steps_and_their_credit_whatever_the_path(tmp_path: Path, name: str):
    store = write_store(tmp_path / name / name, worked_example())
    # Patterns made of the path would find these.
    for other in ("a", "backxslash"):
        write_store(tmp_path / other / other, trajectory("other", "A a B"))
    assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    found = {reader: read(store) for reader, (read, _) in READERS.items()}
    assert found == {reader: expected for reader, (_, expected) in READERS.items()}


def test_a_relative_path_that_looks_like_a_url_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write_store(tmp_path / "window:20", worked_example())
    store = open_store(Path("window:20"))
    assign_credit(store, CreditSettings(estimators=configure(["grpo"])))
    found = {reader: read(store) for reader, (read, _) in READERS.items()}
    assert found == {reader: expected for reader, (_, expected) in READERS.items()}


@pytest.mark.parametrize("opener", [open_store, create_store])
def test_a_path_that_is_no_text_is_refused_in_one_line(
    tmp_path: Path, opener: Callable[[Path], Store]
):
    root = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9"))
    with pytest.raises(StoreFormatError, match=r"paths must be UTF-8: found b'.*caf\\xe9'") as info:
        opener(root)
    assert "\n" not in str(info.value)
    assert not root.exists()


@pytest.mark.parametrize("reader", ["read_steps", "unlocked", "sandbox", "export"])
def test_a_shard_whose_name_is_no_text_is_refused_by_name(tmp_path: Path, reader: str):
    store = write_store(tmp_path / "s", worked_example())
    shard = os.fsencode(store.steps_dir("r0", 0)) + b"/w\xff.parquet"
    os.link(store.shards()[0].path, shard)
    read, _ = READERS[reader]
    with pytest.raises(InputError, match=r"paths must be UTF-8: found b'.*w\\xff\.parquet'"):
        read(store)
