"""`graphcredit check` as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

from graphcredit.collector.recorder import StepRecorder
from tests.store.whole_store import CREDIT, STEPS, add_file, set_value, whole_store
from tests.worlds import trajectory, write_store


def graphcredit_check(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "graphcredit.cli.main", "check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_sound_store_exits_with_0_and_counts_what_it_holds(tmp_path: Path):
    result = graphcredit_check(whole_store(tmp_path / "store").root)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "1 step shards, 10 steps, 4 trajectories (1 incomplete): 0 errors, 0 notices\n"
    )


def test_a_broken_rule_exits_with_1_and_names_file_row_and_remedy(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "cost", -1.0)(store.root)
    add_file("odd \x1b[2J name.txt")(store.root)
    result = graphcredit_check(store.root)
    assert result.returncode == 1
    consequence, error, notice, _ = result.stdout.splitlines()
    # The trajectory is no longer complete.
    assert consequence.startswith(f"error: no_credit_for_incomplete: {CREDIT}, rows 0, 1, 2, 3: ")
    assert error == (
        f"error: positive_cost: {STEPS}, row 1: cost must be finite and above 0: found -1.0; "
        "correct the program that wrote it; `graphcredit check STORE --quarantine` moves it aside"
    )
    assert notice.startswith(r"notice: unknown_file: odd \x1b[2J name.txt: ")


def test_json_has_the_whole_report(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "cost", -1.0)(store.root)
    result = graphcredit_check(store.root, "--json")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    _, error = report["errors"]
    assert (error["rule"], error["file"], error["first_rows"]) == ("positive_cost", STEPS, [1])
    assert (report["num_steps"], report["num_incomplete"], report["notices"]) == (10, 2, [])


def test_quarantine_moves_what_is_broken_and_then_the_store_is_sound(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "cost", -1.0)(store.root)
    result = graphcredit_check(store.root, "--quarantine")
    assert result.returncode == 0
    assert f"moved {STEPS} to quarantine/" in result.stdout
    assert "its sound trajectories are in steps/run_id=r0/iteration=000000/kept-" in result.stdout
    again = graphcredit_check(store.root, "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["num_steps"] == 6


def test_recover_makes_a_shard_of_a_dead_workers_spool(tmp_path: Path):
    root = write_store(tmp_path / "store", trajectory("x", "A a B")).root
    code = (
        "import os\n"
        "from graphcredit.collector.recorder import StepRecorder\n"
        f"recorder = StepRecorder({str(root)!r}, run_id='r0', iteration=0, worker_id='w7')\n"
        "recorder.__enter__()\n"
        "trajectory = recorder.trajectory(task_id='t0').__enter__()\n"
        "trajectory.log(state='A', action='a', next_state='B', reward=0.0)\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    before = graphcredit_check(root)
    assert "notice: left_over_spool: spool/w7.arrows" in before.stdout
    after = graphcredit_check(root, "--recover")
    assert "recovered 1 steps of w7: steps/run_id=r0/iteration=000000/w7-" in after.stdout
    assert "2 step shards, 2 steps, 2 trajectories (1 incomplete): 0 errors" in after.stdout


def test_a_store_that_our_recorder_wrote_is_sound(tmp_path: Path):
    with (
        StepRecorder(tmp_path / "store", run_id="r0", iteration=3, worker_id="w7") as recorder,
        recorder.trajectory(task_id="kitchen") as steps,
    ):
        steps.log(state="A", action="a", next_state="B", reward=1.0, response_ids=[1, 2])
        steps.end(success=True)
    result = graphcredit_check(tmp_path / "store")
    assert result.returncode == 0
    assert result.stdout.endswith("1 trajectories (0 incomplete): 0 errors, 0 notices\n")


def test_a_directory_that_is_no_store_exits_with_2(tmp_path: Path):
    result = graphcredit_check(tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "is not a store" in result.stderr
