"""`graphcredit collect`, as it is typed, interrupted and typed again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from graphcredit.store import open_store, read_steps
from tests.cli.in_process import run

COMMAND = [sys.executable, "-m", "graphcredit.cli.main", "collect"]
GAME = ["--env", "textworld", "--games", "coin-l105-s1", "--policy", "random"]


@pytest.fixture(autouse=True)
def _cache(games_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(games_dir.parents[1]))


def _run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _start(*arguments: str | Path) -> "subprocess.Popen[str]":
    """Start the command as a shell does: in a process group of its own."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait_for_steps(store: Path) -> None:
    """Wait until a worker has written two or three trajectories to its spool."""
    deadline = time.monotonic() + 300
    while not any(path.stat().st_size > 100_000 for path in (store / "spool").glob("*.jsonl")):
        assert time.monotonic() < deadline, "no worker began to play"
        time.sleep(0.02)


def _ends(store: Path) -> Counter[str]:
    """Return how many of the trajectories of each index have ended."""
    tables = read_steps(open_store(store), columns=["trajectory_id", "success"])
    rows = [row for table in tables for row in table.to_pylist()]
    ended = [row["trajectory_id"] for row in rows if row["success"] is not None]
    return Counter(name.partition(".")[0] for name in ended)


def _all_once(group_size: int) -> dict[str, int]:
    return {f"textworld-coin-l105-s1:{index}": 1 for index in range(group_size)}


def test_help_has_an_example_and_needs_no_game_library():
    shown = _run("--help")
    assert shown.returncode == 0
    assert "graphcredit collect STORE --env textworld" in shown.stdout


def test_the_summary_is_on_stdout_and_the_second_time_nothing_is_played(tmp_path: Path):
    arguments = [
        *("collect", tmp_path / "store", "--env", "sokoban", "--games", "5x5b1-s0"),
        *("--policy", "oracle:0", "--workers", "0"),
        *("--group-size", "3", "--max-steps", "4", "--oracle"),
    ]
    first = run(*arguments, "--json")
    # On a slow machine a line says how far it is.
    notices = [line for line in first.err.splitlines() if not line.endswith(" s so far")]
    assert (first.exit_code, notices) == (0, [])
    summary = json.loads(first.out)
    assert summary["num_trajectories"] == 3
    assert summary["num_success"] + summary["num_lost"] + summary["num_truncated"] == 3
    assert summary["steps_per_second"] == summary["num_steps"] / summary["seconds"]
    second = run(*arguments)
    assert second.exit_code == 0
    assert second.out == "0 rollouts of 1 task played, 3 were there already\n"
    tables = list(read_steps(open_store(tmp_path / "store"), columns=["oracle_distance"]))
    assert sum(table.num_rows for table in tables) == summary["num_steps"]
    assert sum(table["oracle_distance"].null_count for table in tables) == 0


@pytest.mark.one_in(2, others="nightly")
@pytest.mark.play
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_after_ctrl_c_or_kill_the_same_command_plays_what_is_missing(
    tmp_path: Path, number: signal.Signals, exit_code: int
):
    store = tmp_path / "store"
    arguments = [store, *GAME, "--group-size", "16", "--max-steps", "50"]
    collecting = _start(*arguments)
    _wait_for_steps(store)
    os.killpg(collecting.pid, number)
    stdout, stderr = collecting.communicate(timeout=300)
    assert collecting.returncode == exit_code
    assert "Traceback" not in stderr
    assert ("the same command again goes on" in stderr) == (number == signal.SIGINT)
    assert stdout == ""
    again = run("collect", *arguments, "--workers", "0", "--json")
    assert again.exit_code == 0, again.err
    summary = json.loads(again.out)
    assert summary["num_already_complete"] > 0
    assert (summary["num_recovered_steps"] > 0) == (number == signal.SIGKILL)
    assert _ends(store) == _all_once(16)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--env", "chess", "--policy", "random"],
            "environments are textworld, search, sokoban, alfworld",
        ),
        (["--env", "textworld", "--policy", "best"], "policies are random, oracle:EPSILON"),
        (["--env", "textworld", "--policy", "random", "--games", "go"], "got 'go'"),
        (
            ["--env", "textworld", "--policy", "random", "--workers", "-1"],
            "collect.workers must be at least 0",
        ),
        (["--env", "textworld"], "Missing option '--policy'"),
        (["--env", "textworld", "--policy", "random", "--run", "../r"], "run_id becomes part of"),
    ],
)
def test_wrong_use_is_one_message_and_exit_code_2(
    tmp_path: Path, arguments: list[str], message: str
):
    refused = run("collect", tmp_path / "store", *arguments)
    assert (refused.exit_code, refused.out) == (2, "")
    assert message in refused.err
