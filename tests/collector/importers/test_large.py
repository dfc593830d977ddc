"""Large logs: small batches, a journal of steps, and one batch write the same store."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.reading import read_trajectories
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.sources import log_at
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.writer import writing
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.store import create_store
from graphcredit.store.errors import RecorderError
from tests.cli.in_process import run as run_command
from tests.collector.importers.logs import (
    WALKS,
    called,
    episode,
    said,
    walk,
    write_json,
    write_lines,
)
from tests.collector.importers.read_back import imported, small_pieces, steps_of
from tests.examples import examples, nightly

ROOMS = ["kitchen", "garden", "cellar", "Küche", "廊下 \ud83d"]
ROWS = st.lists(
    st.builds(
        lambda rooms, task, reward, run: walk(*rooms, task=task, reward=reward, run_id=run),
        st.lists(st.sampled_from(ROOMS), min_size=1, max_size=4),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0.0, 1.0, None, "high", 1e30]),
        st.sampled_from(["r", "s"]),
    ),
    min_size=1,
    max_size=12,
)


def _facts(store: Path) -> list[dict[str, Any]]:
    """Return the steps but for the time at which they were written."""
    unlike = ("logged_at", "worker_id")
    return [{k: v for k, v in row.items() if k not in unlike} for row in steps_of(store)]


def _in_small_parts(log: Path, store: Path, **options: Any) -> ImportReport:
    """Import a few lines at a time."""
    with small_pieces(3000):
        return imported(log, store, **options)


def _by_recorder(log: Path, store: Path) -> None:
    """Import as slowly as can be: each trajectory by the recorder, and no copies."""
    whole = log_at(log, ImportOptions())
    numbers: dict[str, int] = {}
    for each in read_trajectories(whole, Tally(options=whole.options)):
        name = each.trajectory_id
        numbers[name] = numbers.get(name, 0) + 1
        if numbers[name] > 1:
            name = f"{name}.{numbers[name]}"
        with (
            StepRecorder(
                store, run_id=each.run_id, iteration=each.iteration, worker_id="import"
            ) as recorder,
            recorder.together() as together,
        ):
            trajectory = together.trajectory(task_id=each.task_id, trajectory_id=name)
            for step in each.steps:
                trajectory.log(**step)


@settings(max_examples=examples(25))
@given(rows=ROWS)
def test_shards_have_what_the_recorder_would_write(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
):
    folder = tmp_path_factory.mktemp("log")
    log = write_lines(folder / "w.jsonl", *rows)
    report = imported(log, folder / "store")
    assert report.num_bad_rows == sum(row["reward"] in ("high", 1e30) for row in rows)
    _by_recorder(log, create_store(folder / "slow").root)
    if report.num_trajectories:
        assert _facts(folder / "store") == _facts(folder / "slow")


def test_tokens_are_written_as_the_recorder_writes_them(tmp_path: Path):
    log = write_lines(tmp_path / "t.jsonl", episode("a"), episode("b", rewards={}))
    assert imported(log, tmp_path / "store").num_with_tokens == 4
    _by_recorder(log, create_store(tmp_path / "slow").root)
    assert _facts(tmp_path / "store") == _facts(tmp_path / "slow")


def _folder(path: Path) -> Path:
    """Write a log of many kinds of files, with copies, bad rows and equal rows."""
    rows = [walk("kitchen", str(number % 7), trial=number % 20) for number in range(60)]
    broken = ["{", {**WALKS[0], "messages": [said("wizard", "?")]}, {**WALKS[0], "reward": "high"}]
    write_lines(path / "a.jsonl", *rows[:30], *broken, *rows[20:])
    write_lines(path / "b.jsonl", *rows[:5], {**rows[5], "messages": [called("x", y="Küche")]})
    traces = [episode(f"t{number % 12}") for number in range(14)]
    write_lines(path / "traces.jsonl", *traces, episode("t3", rewards={}))
    write_json(path / "list.json", [*rows[50:], walk("cellar")])
    for number in range(12):
        write_json(path / "many" / f"{number}.json", walk("garden", task=f"m{number % 3}"))
    table = [{"messages": row["messages"][1:2] + row["messages"][-1:]} for row in rows]
    pq.write_table(pa.Table.from_pylist(table), path / "rows.parquet", row_group_size=7)
    write_json(path / "config.json", {"a": 1})
    return path


def test_many_batches_write_what_one_writes(tmp_path: Path):
    log = _folder(tmp_path / "log")
    alone = imported(log, tmp_path / "alone")
    report = _in_small_parts(log, tmp_path / "many")
    assert report == alone
    assert (report.num_bad_rows, report.num_files["messages"]) == (4, 16)
    assert report.left_out["copy of a rollout that was read before"] > 1
    assert _facts(tmp_path / "many") == _facts(tmp_path / "alone")
    again = _in_small_parts(log, tmp_path / "many")
    assert (again.num_trajectories, again.num_already_there) == (0, alone.num_trajectories)


def test_a_store_has_one_import_at_a_time(tmp_path: Path):
    log, store = write_lines(tmp_path / "w.jsonl", *WALKS), tmp_path / "store"
    with (
        writing(create_store(store)),
        pytest.raises(RecorderError, match=r"one import at a time: another .* locked by this proc"),
    ):
        imported(log, store)
    assert imported(log, store).num_trajectories == 3


_SMALL_SHARDS = """
import sys
from graphcredit.collector import import_log
from graphcredit.collector.importers import writer
from graphcredit.collector.importers.helpers import read
from graphcredit.collector.importers.logs import jsonl
read.SMALL_BYTES = writer.SHARD_BYTES = jsonl.BLOCK_BYTES = 1 << 16
import_log(*sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("num_shards", [nightly(1), 20])
def test_an_import_that_is_killed_goes_on(tmp_path: Path, num_shards: int):
    results = [f"{number} {'long ' * 200}" for number in range(9)]
    rows = [walk(*results[: number % 9 + 1], trial=number) for number in range(2000)]
    log, store = write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store"
    with subprocess.Popen([sys.executable, "-c", _SMALL_SHARDS, log, store]) as killed:
        while len(list(store.rglob("*.parquet"))) < num_shards:
            assert killed.poll() is None
            time.sleep(0.005)
        os.kill(killed.pid, signal.SIGKILL)
    report = imported(log, store)
    whole = imported(log, tmp_path / "whole")
    assert 0 < report.num_already_there < whole.num_trajectories
    assert report.num_trajectories + report.num_already_there == whole.num_trajectories
    assert _facts(store) == _facts(tmp_path / "whole")
    checked = run_command("check", store)
    assert (checked.exit_code, "0 errors" in checked.out) == (0, True)
    assert list(store.rglob("*.tmp")) == []
