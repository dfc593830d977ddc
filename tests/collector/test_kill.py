"""A worker may die at any moment: every acknowledged step is in the store exactly once."""

import os
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector import StepRecorder
from graphcredit.collector.recording.recovery import recover_spools
from graphcredit.collector.recording.shards import find_shard
from graphcredit.collector.recording.spool_format import read_spool
from graphcredit.store import Store, create_store, read_steps
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import RecorderError
from tests.collector import crash_worker
from tests.forks import FORKS


def _run(target: Callable[..., None], *arguments: object) -> int | None:
    process = FORKS.Process(target=target, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def _steps(store: Store) -> list[dict[str, Any]]:
    return [row for table in read_steps(store) for row in table.to_pylist()]


def _assert_each_acknowledged_once(store: Store, acknowledged: Path) -> None:
    """Every acknowledged step is stored once, and at most one more."""
    lines = (
        acknowledged.read_text(encoding="utf-8").split("\n")[:-1] if acknowledged.exists() else []
    )
    rows = _steps(store)
    stored = Counter((row["trajectory_id"], str(row["step_index"])) for row in rows)
    assert set(stored.values()) <= {1}
    steps = {tuple(line.split()) for line in lines if not line.endswith(" end")}
    assert steps <= stored.keys()
    assert len(stored) <= len(steps) + 1
    ended = {row["trajectory_id"] for row in rows if row["success"] is not None}
    assert {line.split()[0] for line in lines if line.endswith(" end")} <= ended
    for row in rows:
        assert row["next_state"] == str(row["step_index"] + 1)
        assert row["reward"] == 0.5 * row["step_index"]
        assert (row["success"] is not None) == (row["terminated"] or row["truncated"])
    assert {path.name for path in store.spool_dir.glob("*")} <= {".lock"}
    assert not list(store.root.rglob("*.tmp"))


def _must_have_loaded() -> None:
    assert "tests.preload" in sys.modules


def test_a_copy_has_loaded_what_tests_run():
    """Python is silent where it cannot load it: each copy would then load it again."""
    assert _run(_must_have_loaded) == 0


def test_no_kill_between_two_file_operations_loses_or_doubles_a_step(tmp_path: Path):
    left_over: set[str] = set()
    for kill_before in range(200):
        root, acknowledged = tmp_path / f"{kill_before}", tmp_path / f"{kill_before}.txt"
        store = create_store(root)
        code = _run(crash_worker.record_until_killed, root, acknowledged, kill_before)
        left_over.add(_left_over(store))
        recover_spools(store)
        _assert_each_acknowledged_once(store, acknowledged)
        if code == 0:
            assert len(_steps(store)) == 6
            break
        assert code == -signal.SIGKILL
    assert left_over >= {
        "",
        "tmp",
        "jsonl",
        "jsonl tmp",
        "closing tmp",
        "closing jsonl",
        "closing jsonl, its shard",
        "jsonl, its shard",
    }


def _left_over(store: Store) -> str:
    """Return which of the worker's files there are, and whether the older has its shard."""
    paths = [p for p in store.spool_dir.glob("*") if p.suffix != ".lock"]
    names = " ".join(sorted(path.suffix[1:] for path in paths))
    spools = sorted((p for p in paths if p.suffix != ".tmp"), key=lambda p: p.suffix)
    has_shard = spools and find_shard(store, read_spool(spools[0]).header)
    return f"{names}, its shard" if has_shard else names


@pytest.mark.slow
def test_no_kill_during_recovery_loses_or_doubles_a_step(tmp_path: Path):
    """Two spools are left over when the worker dies before the shard of the first is there."""
    killed, acknowledged = tmp_path / "killed", tmp_path / "killed.txt"
    for kill_before in range(200):
        create_store(killed)
        _run(crash_worker.record_until_killed, killed, acknowledged, kill_before)
        if {"w0.closing", "w0.jsonl"} <= {path.name for path in (killed / "spool").glob("*")}:
            break
        shutil.rmtree(killed)
        acknowledged.unlink(missing_ok=True)
    for kill_before in range(50):
        root = tmp_path / f"{kill_before}"
        store = Store(Path(shutil.copytree(killed, root)))
        code = _run(crash_worker.recover_until_killed, root, kill_before)
        recover_spools(store)
        _assert_each_acknowledged_once(store, acknowledged)
        if code == 0:
            assert kill_before > 5
            return
    pytest.fail("the recovery never finished")


def test_workers_that_start_together_share_a_store_that_is_not_there_yet(tmp_path: Path):
    root = tmp_path / "store"
    workers = [
        FORKS.Process(target=crash_worker.record_a_little, args=(root, f"w{number}"))
        for number in range(12)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 12
    rows = _steps(Store(root))
    assert len(rows) == 12 * 5
    assert len({row["trajectory_id"] for row in rows}) == 12


@contextmanager
def _child_of_a_dead_worker(root: Path, pid_file: Path, *, by_python: bool) -> Generator[int]:
    """Let a worker fork a child and die; the child is at work until the block ends."""
    process = FORKS.Process(
        target=crash_worker.leave_child, args=(root, pid_file), kwargs={"by_python": by_python}
    )
    process.start()
    process.join()
    child = int(pid_file.read_text())
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_child_that_outlives_its_worker_does_not_keep_the_spool(tmp_path: Path):
    store = create_store(tmp_path / "store")
    with _child_of_a_dead_worker(store.root, tmp_path / "child", by_python=True):
        assert [recovered.num_steps for recovered in recover_spools(store)] == [1]


def test_a_child_that_keeps_a_dead_workers_lock_is_named(tmp_path: Path):
    store, held = create_store(tmp_path / "store"), dict[str, str]()
    with _child_of_a_dead_worker(store.root, tmp_path / "child", by_python=False) as child:
        assert recover_spools(store, on_held=held.__setitem__) == []
        assert re.search(rf"w0\.lock is locked by process {child} \(.*end it", held["w0"])
        with pytest.raises(RecorderError, match=rf"w0\.lock is locked by process {child} \("):
            StepRecorder(store, run_id="r0", iteration=0, worker_id="w0")
        (notice,) = check_store(store).notices
        assert (notice.rule.name, notice.file) == ("left_over_spool", "spool/w0.jsonl")
    while not (recovered := recover_spools(store)):
        time.sleep(0.01)  # the kernel takes a moment to end the child
    assert [each.num_steps for each in recovered] == [1]


def test_a_live_worker_is_left_alone_until_it_dies(tmp_path: Path):
    store, ready = create_store(tmp_path / "store"), tmp_path / "ready"
    process = FORKS.Process(target=crash_worker.hold_recorder, args=(store.root, ready))
    process.start()
    while not ready.exists():
        time.sleep(0.01)
    assert recover_spools(store) == []
    with pytest.raises(RecorderError, match="'w0' has a live one"):
        StepRecorder(store, run_id="r0", iteration=0, worker_id="w0")
    process.kill()
    process.join()
    (recovered,) = recover_spools(store)
    assert (recovered.worker_id, recovered.run_id, recovered.num_steps) == ("w0", "r0", 1)
    assert [row["trajectory_id"] for row in _steps(store)] == ["x"]


def test_foreign_files_beside_spools_are_left_alone_and_the_rest_is_recovered(tmp_path: Path):
    store, ready = create_store(tmp_path / "store"), tmp_path / "ready"
    process = FORKS.Process(target=crash_worker.hold_recorder, args=(store.root, ready))
    process.start()
    while not ready.exists():
        time.sleep(0.01)
    process.kill()
    process.join()
    content = (store.spool_dir / "w0.jsonl").read_bytes()
    foreign = ["._w0.jsonl", "w0 (copy).jsonl", "w0 conflicted.lock", "é.tmp", "-.closing"]
    for name in foreign:
        (store.spool_dir / name).write_bytes(content)
    (store.spool_dir / "w1.jsonl").mkdir()
    os.mkfifo(store.spool_dir / "w2.closing")
    (store.spool_dir / "w3.lock").symlink_to(tmp_path / "made")
    shutil.copy(store.spool_dir / "w0.jsonl", store.spool_dir / "w3.jsonl")
    held = dict[str, str]()
    assert [each.num_steps for each in recover_spools(store, on_held=held.__setitem__)] == [1]
    assert list(held) == ["w3"]
    assert "it is a link" in held["w3"]
    assert not (tmp_path / "made").exists()
    assert {name for name in foreign if not (store.spool_dir / name).exists()} == set()
    named = {v.file for v in check_store(store).notices if v.rule.name == "unknown_file"}
    assert named >= {f"spool/{name}" for name in foreign if not name.endswith(".tmp")}
    with StepRecorder(store, run_id="r0", iteration=0, worker_id="w9") as recorder:
        recorder.trajectory(task_id="t", trajectory_id="y").log(**crash_worker.step(0))
    assert {row["trajectory_id"] for row in _steps(store)} == {"x", "y"}
