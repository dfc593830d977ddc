"""What the kill tests run in processes of their own."""

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphcredit.collector import StepRecorder
from graphcredit.collector.recording.recovery import recover_spools
from graphcredit.store import open_store

COUNTED = ("open", "write", "replace", "unlink", "ftruncate", "fsync")
"""Calls of `os` that change files; a process can be killed before each of them."""


def record_until_killed(root: Path, acknowledged: Path, kill_before: int) -> None:
    """Record three trajectories in shards of two steps; die before the n-th change of a file."""
    _kill_before_call(kill_before)
    say = _writer(acknowledged)
    with (
        StepRecorder(root, run_id="r0", iteration=0, worker_id="w0", max_rows=2) as recorder,
        recorder.trajectory(task_id="t", trajectory_id="x") as x,
        recorder.trajectory(task_id="t", trajectory_id="y") as y,
        recorder.trajectory(task_id="t", trajectory_id="z") as z,
    ):
        for index in range(3):
            for trajectory in (x, y, z)[: 3 - index]:
                trajectory.log(**step(index))
                say(f"{trajectory.trajectory_id} {index}")
        for trajectory in (x, y):
            trajectory.end(success=trajectory is x)
            say(f"{trajectory.trajectory_id} end")


def recover_until_killed(root: Path, kill_before: int) -> None:
    """Recover a store; die before the n-th change of a file."""
    _kill_before_call(kill_before)
    recover_spools(open_store(root))


def record_a_little(root: Path, worker_id: str) -> None:
    """Record one trajectory of five steps in shards of two."""
    with (
        StepRecorder(root, run_id="r0", iteration=0, worker_id=worker_id, max_rows=2) as recorder,
        recorder.trajectory(task_id="t") as trajectory,
    ):
        for index in range(5):
            trajectory.log(**step(index))
        trajectory.end(success=True)


def hold_recorder(root: Path, ready: Path) -> None:
    """Open a recorder of worker w0, log one step, and wait to be killed."""
    with StepRecorder(root, run_id="r0", iteration=0, worker_id="w0") as recorder:
        recorder.trajectory(task_id="t", trajectory_id="x").log(**step(0))
        ready.touch()
        while True:
            time.sleep(1)


def leave_child(root: Path, child: Path, *, by_python: bool) -> None:
    """Log one step as worker w0, fork a child that lives on, write its number, and die."""
    recorder = StepRecorder(root, run_id="r0", iteration=0, worker_id="w0")
    recorder.trajectory(task_id="t", trajectory_id="x").log(**step(0))
    process = os.fork() if by_python else ctypes.CDLL(None).fork()
    if not process:
        time.sleep(600)
        os._exit(0)
    child.write_text(str(process))
    os.kill(os.getpid(), signal.SIGKILL)


def step(index: int) -> dict[str, Any]:
    """Return the columns of one step of the chain 0, 1, 2, …"""
    return {"state": str(index), "action": "a", "next_state": str(index + 1), "reward": 0.5 * index}


def _writer(path: Path) -> Callable[[str], None]:
    file = path.open("a", encoding="utf-8", buffering=1)

    def say(line: str) -> None:
        file.write(f"{line}\n")

    return say


def _kill_before_call(number: int) -> None:
    num_left = number

    def killing(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            nonlocal num_left
            if num_left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            num_left -= 1
            return call(*arguments, **options)

        return run

    for name in COUNTED:
        setattr(os, name, killing(getattr(os, name)))
