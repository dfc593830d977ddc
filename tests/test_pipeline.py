"""The example of three processes: killed in each, it ends with the policies of one that was not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphcredit.store import open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.provenance.freshness import credit_freshness
from tests.cli.in_process import run as graphcredit

SCRIPT = Path(__file__).parent.parent / "examples" / "pipeline.py"


def run(folder: Path, on_line: Callable[[str], None] = lambda line: None) -> list[bytes]:
    """Run the pipeline; return its policies."""
    command = [sys.executable, str(SCRIPT), "run", str(folder), "--seconds-per-step", "0.005"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line)
    assert process.returncode == 0
    return [(folder / f"policy-{number}.json").read_bytes() for number in (1, 2, 3, 4)]


class Killer:
    """Kills each process once: the player amid its steps, the others when they have done one."""

    def __init__(self, folder: Path) -> None:
        self._spools = folder / "store" / "spool"
        self.pids: dict[str, list[int]] = {}

    def __call__(self, line: str) -> None:
        name, _, pid = line.partition(": process ")
        if pid:
            self.pids.setdefault(name, []).append(int(pid))
            if name == "rollouts" and len(self.pids[name]) == 1:
                self._wait_for_steps()
                self._kill(name)
        elif line == "credit of iteration 0\n":
            self._kill("credit")
        elif line.startswith("iteration 0: "):
            self._kill("train")

    def _wait_for_steps(self) -> None:
        """Wait until trajectories are in the spool; half of them take 0.2 s more."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not any(self._spools.glob("*.jsonl")):
            time.sleep(0.01)
        time.sleep(0.2)

    def _kill(self, name: str) -> None:
        if len(self.pids[name]) == 1:
            os.kill(self.pids[name][0], signal.SIGKILL)


@pytest.mark.slow
def test_killed_in_each_process_it_ends_with_the_same_policies(tmp_path: Path):
    whole = run(tmp_path / "whole")
    killer = Killer(tmp_path / "killed")
    assert run(tmp_path / "killed", killer) == whole
    assert {name: len(pids) for name, pids in killer.pids.items()} == {
        "rollouts": 2,
        "credit": 2,
        "train": 2,
    }
    store = open_store(tmp_path / "killed" / "store")
    graphcredit("check", store.root, "--recover")
    assert check_store(store).errors == ()
    states = [(state.iteration, state.state) for state in credit_freshness(store)]
    assert states == [(number, "current") for number in range(4)]


@pytest.mark.slow
def test_a_process_that_fails_ends_the_others(tmp_path: Path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "notes.txt").touch()
    command = [sys.executable, str(SCRIPT), "run", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 1
    assert "failed" in ended.stderr
