"""Under `ulimit -v`, a command that needs more ends in one line, and others end as without it."""

import subprocess
import sys
from pathlib import Path

import pytest

from graphcredit.store.checks.run import check_store
from tests.worlds import worked_example, write_store


def _run(limit: int, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a command with a limit in MiB."""
    command = [sys.executable, "-m", "graphcredit.cli.main", *map(str, arguments)]
    limited = ["bash", "-c", f'ulimit -v {limit << 10}; exec "$@"', "bash", *command]
    return subprocess.run(limited, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["why", "credit", "evidence"])
def test_want_of_memory_is_one_line(tmp_path: Path, command: str):
    store = write_store(tmp_path / "store", worked_example())
    ended = _run(300, command, store.root)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("graphcredit: this needs more than the 300 MiB of memory that")
    assert ended.stderr.count("\n") == 1
    assert not check_store(store).errors


def test_other_ends_are_as_without_a_limit():
    helped = _run(4_000, "estimators", "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "Usage" in helped.stdout
    refused = _run(4_000, "audit", "/nowhere")
    assert refused.returncode == 2
    assert refused.stderr.startswith("graphcredit: /nowhere")
