"""Clocks that are set back and forth, and times that no calendar of Python has."""

import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.store.layout import open_store
from graphcredit.store.sql.catalog import connect
from graphcredit.viewer.chat.transcript import conversation
from tests.cli.in_process import run
from tests.cli.in_process import run as graphcredit
from tests.examples import nightly
from tests.resumed_kills import RESUMED
from tests.worlds import worked_example, write_store

COMMANDS = (
    "import examples/orders.jsonl STORE --run a",
    "collect STORE --env sokoban --policy random --tasks 1 --run c --workers 0",
    "states STORE --set effects",
    "credit STORE --new -e reach -e grpo",
    "check STORE",
)


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function after which each look at the clock is days off, in either direction."""
    chance, now = random.Random(0), time.time_ns

    def set_it() -> None:
        monkeypatch.setattr(
            time, "time_ns", lambda: now() + chance.randint(-(10**6), 10**6) * 10**9
        )
        monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9)

    return set_it


def _scatter(root: Path) -> None:
    """Give all files other times: some are of the future."""
    chance = random.Random(1)
    for path in root.rglob("*"):
        os.utime(path, times=(0, time.time() + chance.randint(-(10**6), 10**6)))


def _run(store: Path, *, is_set: bool) -> None:
    for command in COMMANDS:
        ended = run(*command.replace("STORE", str(store)).split())
        assert ended.exit_code == 0, ended.err
        if is_set:
            _scatter(store)


def test_a_store_is_the_same_whatever_the_clock_says(tmp_path: Path, set_clock: Any):
    query = "SELECT * EXCLUDE (logged_at, worker_id) FROM enriched ORDER BY ALL"
    found: list[Any] = []
    for name in ("right", "set"):
        if name == "set":
            set_clock()
        _run(tmp_path / name, is_set=name == "set")
        with connect(open_store(tmp_path / name)) as connection:
            found.append(connection.execute(query).fetchall())
            late = connection.execute(
                "SELECT count(*) FROM (SELECT logged_at < lag(logged_at) OVER (PARTITION BY"
                " trajectory_id ORDER BY step_index) AS late FROM steps) WHERE late"
            ).fetchall()
            assert late == [(0,)]
    assert found[0] == found[1]
    ended = run("credit", tmp_path / "set", "--new", "-e", "reach", "-e", "grpo")
    assert "nothing to do" in ended.out + ended.err


@pytest.mark.slow
def test_a_training_goes_on_whatever_the_clock_says(tmp_path: Path, set_clock: Any):
    trained = RESUMED["train, shared"]
    trained.prepare(tmp_path)
    trained.work(tmp_path, "right")
    set_clock()
    trained.work(tmp_path, "set")
    for checkpoint in sorted((tmp_path / "set" / "checkpoints").iterdir())[1:]:
        os.utime(checkpoint, times=(0, 0))
    (tmp_path / "set" / "result.json").unlink()
    trained.work(tmp_path, "set")
    assert trained.result(tmp_path, "set") == trained.result(tmp_path, "right")


FAR = {"year 33658": 10**18, "last": 2**63 - 2, "before Christ": -(10**17)}
"""Microseconds since 1970."""


@pytest.mark.parametrize("name", [nightly("year 33658"), "last", "before Christ"])
def test_steps_of_any_time_are_read(tmp_path: Path, name: str):
    store, micros = write_store(tmp_path / "store", worked_example()), FAR[name]
    for shard in store.shards():
        _set_time(shard.path, "logged_at", micros)
    for command in (
        ("check", store.root),
        ("credit", store.root, "-e", "spo3", "-e", "graphgpo"),
        ("audit", store.root),
        ("sql", store.root, "SELECT * FROM steps"),
        ("sql", store.root, "SELECT * FROM trajectories", "--format", "json"),
        ("sql", store.root, "SELECT * FROM steps", "--format", "csv"),
        ("export", store.root, tmp_path / "out"),
        ("view", store.root, "--bundle", tmp_path / "bundle"),
    ):
        result = graphcredit(*command)
        assert result.exit_code in (0, 1), result.err
    assert conversation(store, run_id="r0", iteration=0, trajectory_id="x")


def _set_time(path: Path, column: str, micros: int) -> None:
    table = pq.read_table(path)
    index, field = table.schema.get_field_index(column), table.schema.field(column)
    times = pa.array([micros] * table.num_rows, pa.int64()).cast(field.type)
    pq.write_table(table.set_column(index, field, times), path)
