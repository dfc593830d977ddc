"""Readers see the credit before a run or after it, never some of each."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pyarrow.parquet as pq
import pytest

import graphcredit.credit.iteration.writer as writer
import graphcredit.store.parquet.snapshot as snapshot
from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import QueryRefusedError, ReplacedError
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.snapshot import replacing, unchanged
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.store.sql.sandbox import run_query
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.step_filters import Filters
from graphcredit.trainer.data.step_index import read_index
from graphcredit.viewer.queries.estimators import credit_doubts
from graphcredit.viewer.queries.views import answer
from tests.trainer.logs import token_store
from tests.worlds import worked_example, write_store

SQL = "SELECT DISTINCT grpo_advantage > 2 AS is_new FROM credit WHERE trajectory_id LIKE '%x'"
"""x wins 10: over the standard deviation 1.15, less the mean only 6.7."""


def _store(root: Path) -> Store:
    return write_store(root, *(worked_example(f"t{number}") for number in (1, 2, 3)))


def _credit(store: Store, normalize: str) -> None:
    options = configure(["grpo"], [f"grpo.normalize={normalize}"])
    assign_credit(store, CreditSettings(estimators=options))


def _trusted(store: Store) -> Any:
    return run_trusted_query(store, SQL).table["is_new"].to_pylist()


def _locked(store: Store) -> Any:
    return run_query(store, SQL).table["is_new"].to_pylist()


def _viewed(store: Store) -> Any:
    return answer(store, SQL, run_id="r0", iteration=0)["is_new"].to_pylist()


def _audited(store: Store) -> Any:
    findings = {finding.check.name for finding in audit(store).findings}
    return ["outdated_credit" not in findings]


def _checked(store: Store) -> Any:
    return ["mixed_credit" not in {found.rule.name for found in check_store(store).violations}]


def _doubted(store: Store) -> Any:
    return [credit_doubts(store, run_id="r0", iteration=None, number=0) == []]


@pytest.mark.parametrize(
    "read",
    [_trusted, _locked, _viewed, _audited, _checked, _doubted],
    ids=lambda read: read.__name__.strip("_"),
)
def test_a_reader_waits_while_credit_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Store], Any]
):
    store = _store(tmp_path / "s")
    _credit(store, "std")
    events: SimpleQueue[object] = SimpleQueue()
    seen: list[str] = []
    monkeypatch.setattr(snapshot, "sleep", _saying(events))
    replace, middle = os.replace, store.shards()[1].credit_path
    reader = threading.Thread(target=lambda: events.put(read(store)))

    def renaming(source: Path, target: Path) -> None:
        replace(source, target)
        if target == middle:
            reader.start()
            seen.append(events.get(timeout=300))

    monkeypatch.setattr(writer.os, "replace", renaming)
    _credit(store, "none")
    assert seen == ["waits"]
    assert _end_of(events) == [True]


def _saying(events: "SimpleQueue[object]") -> Callable[[float], None]:
    """Return a sleep that tells of itself."""

    def sleeping(seconds: float) -> None:
        events.put("waits")
        time.sleep(seconds)

    return sleeping


def _end_of(events: "SimpleQueue[object]") -> object:
    """Return what came after the last wait."""
    while (found := events.get(timeout=300)) == "waits":
        pass
    return found


def test_the_trainer_waits_likewise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = token_store(tmp_path / "s")
    events: SimpleQueue[object] = SimpleQueue()
    monkeypatch.setattr(snapshot, "sleep", _saying(events))

    def read() -> None:
        found = read_index(
            [RunIteration(store, "r0", 0)],
            column="reach_advantage",
            filters=Filters(max_tokens=100),
        )
        events.put(len(found[0]))

    with replacing(store, "r0"):
        reader = threading.Thread(target=read)
        reader.start()
        assert events.get(timeout=300) == "waits"
    assert _end_of(events) == 5


def test_a_reader_that_a_writer_overtakes_reads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = _store(tmp_path / "s")
    _credit(store, "std")
    monkeypatch.setattr(snapshot, "PATIENCE", 0.0)
    seen: list[bool] = []

    def read() -> list[bool]:
        first, *others = store.shards()
        seen.append(_is_new(first))
        if len(seen) == 1:
            _credit(store, "none")
        return [_is_new(first), *map(_is_new, others)]

    assert unchanged(store, read, run_id="r0") == [True] * 3
    assert seen == [False, True]


def _is_new(shard: Shard) -> bool:
    return pq.ParquetFile(shard.credit_path).read()["grpo_advantage"][0].as_py() > 2


def test_an_error_of_a_reader_that_was_overtaken_is_none(tmp_path: Path):
    store = _store(tmp_path / "s")
    calls: list[int] = []

    def read() -> int:
        calls.append(len(calls))
        if len(calls) == 1:
            write_store(store.root, worked_example("t9"))
            raise QueryRefusedError("TProtocolException: Invalid data")
        return len(calls)

    assert unchanged(store, read) == 2
    with pytest.raises(QueryRefusedError, match="of its own"):
        unchanged(store, lambda: _raise(QueryRefusedError("of its own")))


def _raise(error: Exception) -> None:
    raise error


def test_files_that_never_rest_are_an_error(tmp_path: Path):
    store = _store(tmp_path / "s")
    numbers = iter(range(9))
    with pytest.raises(ReplacedError, match="some were replaced"):
        unchanged(store, lambda: write_store(store.root, worked_example(f"t{next(numbers)}")))


def test_step_shards_that_are_added_do_not_count(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    read = lambda: write_store(store.root, worked_example(), iteration=1)  # noqa: E731
    assert unchanged(store, read) == store


def test_credit_that_is_added_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = _store(tmp_path / "s")
    monkeypatch.setattr(snapshot, "PATIENCE", 0.0)
    seen: list[int] = []

    def read() -> int:
        seen.append(sum(shard.credit_path.exists() for shard in store.shards()))
        if len(seen) == 1:
            _credit(store, "std")
        return seen[-1]

    assert unchanged(store, read) == 3


def test_reading_writes_nothing(tmp_path: Path):
    store = _store(tmp_path / "s")
    before = sorted(store.root.rglob("*"))
    assert run_trusted_query(store, "FROM credit").table.num_rows == 0
    assert sorted(store.root.rglob("*")) == before


def test_a_trusted_statement_is_run_once_and_says_what_became_of_its_files(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    (shard,) = store.shards()
    write = f"COPY (FROM steps LIMIT 2) TO '{shard.path}' (FORMAT parquet)"
    (doubt,) = run_trusted_query(store, write).doubts
    assert doubt.startswith("files of the store were replaced while the query ran")
    assert run_trusted_query(store, "FROM steps").table.num_rows == 2
