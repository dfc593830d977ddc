"""`graphcredit credit --watch` in a process of its own: lines, a store to come, signals."""

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphcredit.store import open_store
from graphcredit.store.checks.run import check_store
from tests.cli.in_process import run
from tests.worlds import worked_example, write_store


@contextmanager
def watching(store: Path, *arguments: str) -> "Generator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "graphcredit.cli.main", "credit", str(store), "-e", "grpo"]
    command += ["--watch", "0.05", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: "subprocess.Popen[str]", *, of_stderr: bool = False) -> str:
    stream = process.stderr if of_stderr else process.stdout
    assert stream is not None
    return stream.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_waits_for_the_store_credits_what_appears_and_ends_at_a_signal(
    tmp_path: Path, number: signal.Signals
):
    root = tmp_path / "s"
    with watching(root, "--json") as process:
        assert "no store at" in next_line(process, of_stderr=True)
        write_store(root, worked_example(), iteration=0)
        first = json.loads(next_line(process))
        write_store(root, worked_example(), iteration=1)
        second = json.loads(next_line(process))
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert [(line["iteration"], line["num_steps"]) for line in (first, second)] == [(0, 8), (1, 8)]
    assert (first["run_id"], first["error"]) == ("r0", None)
    assert (process.returncode, out) == (0, "")
    assert err.splitlines()[-1].startswith("the watch has ended")
    assert check_store(open_store(root)).errors == ()


def test_a_line_says_what_was_credited_or_why_not(tmp_path: Path):
    root = tmp_path / "s"
    store = write_store(root, worked_example(), iteration=0)
    store.shards()[0].path.write_bytes(b"no Parquet")
    write_store(root, worked_example(), iteration=1)
    with watching(root) as process:
        failed, credited = next_line(process), next_line(process)
        process.terminate()
        assert process.wait(timeout=20) == 0
    assert failed.startswith("run r0, iteration 0: no credit, until its files change: ")
    assert credited.startswith(
        "run r0, iteration 1: credit for 8 steps of 3 trajectories (1 successful) in 1 group, "
    )


def test_a_directory_that_is_no_store_is_refused_at_once(tmp_path: Path):
    (tmp_path / "notes.txt").touch()
    ended = run("credit", tmp_path, "-e", "grpo", "--watch", 1)
    assert ended.exit_code == 2
    assert "has no store.json" in ended.err
