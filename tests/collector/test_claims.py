"""A task is played by one collection at a time, whoever is killed."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from graphcredit.collector.task_locks import claimed
from graphcredit.store import create_store, open_store, read_steps
from graphcredit.store.checks.run import check_store
from tests.collector.patient_corridor import PATIENCE

COMMAND = (
    *(sys.executable, "-c"),
    "import sys; from tests.collector.patient_corridor import main; main(*sys.argv[1:])",
)
GROUP_SIZE = 6


def _start(store: Path, rooms: str, *, patience: int = 0) -> "subprocess.Popen[str]":
    """Collect in a process; with patience, its worker stops for ever after so many steps."""
    return subprocess.Popen(
        [*COMMAND, str(store), rooms, str(GROUP_SIZE)],
        env=os.environ | {PATIENCE: str(patience)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _line(process: "subprocess.Popen[str]") -> str:
    """Return the next line that a process or its worker writes to stderr."""
    assert process.stderr is not None
    return process.stderr.readline()


def _report(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return what a collection came to, which had nothing else to say."""
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (0, "")
    return json.loads(stdout)


def _check_each_once(store: Path, *rooms: str) -> None:
    """Check that the store keeps every rule, and that every trajectory has ended in it once."""
    assert check_store(open_store(store)).errors == ()
    tables = read_steps(open_store(store), columns=["trajectory_id", "success"])
    rows = [row for table in tables for row in table.to_pylist()]
    ended = [row["trajectory_id"] for row in rows if row["success"] is not None]
    assert Counter(name.partition(".")[0] for name in ended) == {
        f"corridor-{spec}:{index}": 1 for spec in rooms for index in range(GROUP_SIZE)
    }


@pytest.mark.slow
def test_after_a_kill_of_the_parent_the_same_command_waits_for_its_worker_and_goes_on(
    tmp_path: Path,
):
    store = tmp_path / "store"
    first = _start(store, "3,4", patience=20)
    what, worker = _line(first).split()
    assert what == "waiting-in"
    # A worker that stands still outlives its parent for as long as it pleases.
    os.kill(int(worker), signal.SIGSTOP)
    try:
        first.kill()
        first.wait()
        again = _start(store, "3,4")
        assert "another process plays corridor-" in _line(again)
    finally:
        os.kill(int(worker), signal.SIGCONT)
    report = _report(again)
    assert first.communicate(timeout=300)[0] == ""  # nobody of it is left
    assert report["num_recovered_steps"] > 0
    assert 0 < report["num_already_complete"] < 2 * GROUP_SIZE
    assert report["num_already_complete"] + report["num_trajectories"] == 2 * GROUP_SIZE
    _check_each_once(store, "3", "4")
    assert _report(_start(store, "3,4"))["num_trajectories"] == 0


@pytest.mark.slow
def test_other_tasks_of_an_iteration_are_played_meanwhile_the_same_ones_are_not(tmp_path: Path):
    store = tmp_path / "store"
    first = _start(store, "3,4", patience=5)
    assert _line(first).startswith("waiting-in")
    assert _report(_start(store, "5,6"))["num_trajectories"] == 2 * GROUP_SIZE
    overlapping = _start(store, "2,3")
    assert "another process plays corridor-3 of run r0, iteration 0" in _line(overlapping)
    first.kill()
    assert _report(overlapping)["num_trajectories"] > 0
    first.communicate(timeout=300)
    _report(_start(store, "2,3,4,5,6"))
    _check_each_once(store, "2", "3", "4", "5", "6")


def test_who_waits_is_told_once_and_gets_all_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    store = create_store(tmp_path / "store")
    names = [f"t{number}" for number in range(2000)]
    order: list[str] = []

    def wait() -> None:
        with claimed(store, run_id="r0", iteration=0, task_ids=reversed(names)):
            order.append("second")

    with claimed(store, run_id="r0", iteration=0, task_ids=names):
        with claimed(store, run_id="r0", iteration=1, task_ids=names):
            order.append("another iteration")
        with claimed(store, run_id="r1", iteration=0, task_ids=names):
            order.append("another run")
        second = Thread(target=wait)
        second.start()
        while not (told := capsys.readouterr().err):
            second.join(0.01)
        order.append("first")
    second.join()
    assert order == ["another iteration", "another run", "first", "second"]
    assert told.count("waiting") == 1
    assert str(store.root / "spool" / ".lock") in told
    assert capsys.readouterr().err == ""
