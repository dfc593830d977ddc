"""SIGTERM, as of timeout, Slurm, systemd and Docker, is an orderly end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", ["why", "import"])
def test_sigterm_ends_a_command_by_143_and_leaves_no_temporary_file(tmp_path: Path, command: str):
    temporary, log, store = tmp_path / "tmp", tmp_path / "log.jsonl", tmp_path / "store"
    temporary.mkdir()
    os.mkfifo(log)  # nobody writes to it: the command waits
    arguments = [command, log, *([store] if command == "import" else [])]
    running = subprocess.Popen(
        [sys.executable, "-m", "graphcredit.cli.main", *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    writer = os.open(log, os.O_WRONLY)  # waits until the command reads
    assert list(temporary.iterdir()) or command == "import"
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    os.close(writer)
    assert (running.returncode, out) == (143, "")
    assert err.count("\n") == 1
    assert "nterrupted" in err
    assert not list(temporary.iterdir())
