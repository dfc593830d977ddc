"""A clock that is set back and forth: nothing is refused, done twice or told in another order."""

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.layout import open_store
from graphcredit.store.sql.catalog import connect
from tests.cli.in_process import run
from tests.resumed_kills import RESUMED

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
