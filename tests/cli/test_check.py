"""`graphcredit check` as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphcredit.cli.commands.check import check
from graphcredit.cli.main import main
from graphcredit.collector.recording.recorder import StepRecorder
from graphcredit.collector.recording.spool_format import SpoolHeader, SpoolWriter, encode_steps
from graphcredit.store import create_store
from tests.cli.in_process import completed
from tests.store.whole_store import CREDIT, STEPS, add_file, set_value, whole_store
from tests.worlds import trajectory, write_store


def graphcredit_check(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return completed("check", *arguments)


def test_a_sound_store_exits_with_0_and_counts_what_it_holds(tmp_path: Path):
    result = graphcredit_check(whole_store(tmp_path / "store").root)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "unverified: 8 of 8 files, without a digest because another program wrote "
        "them: a flipped bit may go unnoticed\n"
        "1 step shard, 10 steps, 4 rollouts (1 incomplete): 0 errors, 0 notices\n"
    )


def test_a_broken_rule_exits_with_1_and_names_file_row_and_remedy(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "cost", -1.0)(store.root)
    add_file("odd \x1b[2J name.txt")(store.root)
    result = graphcredit_check(store.root)
    assert result.returncode == 1
    consequence, error, advice, *commands, notice, _, _ = result.stdout.splitlines()
    # The trajectory is no longer complete.
    assert consequence.startswith(f"error: no_credit_for_incomplete: {CREDIT}, rows 0, 1, 2, 3: ")
    assert error == (
        f"error: positive_cost: {STEPS}, row 1: cost must be a number from 1e-24 to 1e+24: "
        "found -1.0; correct the program that wrote it"
    )
    assert "to take a file out" in advice
    assert commands == [f"    mv {name} {name}.out" for name in (CREDIT, STEPS)]
    assert notice.startswith(r"notice: unknown_file: odd \x1b[2J name.txt: ")


def test_json_has_the_whole_report(tmp_path: Path):
    store = whole_store(tmp_path / "store")
    set_value(STEPS, 1, "cost", -1.0)(store.root)
    result = graphcredit_check(store.root, "--json")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    _, error = report["errors"]
    assert (error["rule"], error["file"], error["first_rows"]) == ("positive_cost", STEPS, [1])
    assert (report["num_steps"], report["num_incomplete"]) == (10, 2)
    assert report["notices"] == []


def test_json_names_files_whose_names_are_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    store = whole_store(tmp_path / "store")
    Path(os.fsdecode(bytes(store.root) + b"/caf\xe9")).touch()
    check(store.root, as_json=True, recover=False)
    (notice,) = json.loads(capsys.readouterr().out)["notices"]
    assert notice["file"] == "caf\udce9"


@pytest.mark.parametrize(
    "arguments", [("check", b"/caf\xe9"), ("states", b"/", b"--task", b"caf\xe9")]
)
def test_an_argument_that_is_no_text_is_refused_in_one_line(
    arguments: tuple[str | bytes, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sys, "argv", ["graphcredit", *map(os.fsdecode, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        f"graphcredit: arguments must be UTF-8: found {arguments[-1]!r}. Rename the file, or reach "
        "it by another path"
    ]


def test_recover_makes_a_shard_of_a_dead_workers_spool(tmp_path: Path):
    root = write_store(tmp_path / "store", trajectory("x", "A a B")).root
    code = (
        "import os\n"
        "from graphcredit.collector.recording.recorder import StepRecorder\n"
        f"recorder = StepRecorder({str(root)!r}, run_id='r0', iteration=0, worker_id='w7')\n"
        "recorder.__enter__()\n"
        "trajectory = recorder.trajectory(task_id='t0').__enter__()\n"
        "trajectory.log(state='A', action='a', next_state='B', reward=0.0)\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    before = graphcredit_check(root)
    assert "notice: left_over_spool: spool/w7.jsonl" in before.stdout
    after = graphcredit_check(root, "--recover")
    assert "recovered 1 step of w7: steps/run_id=r0/iteration=000000/w7-" in after.stdout
    assert "2 step shards, 2 steps, 2 rollouts (1 incomplete): 0 errors" in after.stdout


def test_recover_says_what_of_a_damaged_spool_is_not_in_a_shard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    store = create_store(tmp_path / "store")
    header = SpoolHeader(spool_id="s0", run_id="r0", iteration=0, worker_id="w7")
    row = {"task_id": "t0", "trajectory_id": "x", "logged_at": 1, "reward": 1.0}
    row |= {"state": "A", "action": "a", "next_state": "A"}
    lines = [encode_steps([row | {"step_index": index}]) for index in range(3)]
    store.spool_dir.mkdir()
    path = store.spool_dir / "w7.jsonl"
    SpoolWriter(path, header, lines, fsync=False).close()
    content = path.read_bytes()
    # The reward of the middle one: 1.0 becomes 3.0.
    left = len(lines[1]) + len(lines[2])
    place = content.find(b"1.0", len(content) - left)
    path.write_bytes(content[:place] + b"3" + content[place + 1 :])
    monkeypatch.setattr(sys, "argv", ["graphcredit", "check", str(store.root), "--recover"])
    with pytest.raises(SystemExit, match="0"):
        main()
    line, *_ = capsys.readouterr().out.splitlines()
    assert line.startswith("recovered 1 step of w7: steps/run_id=r0/iteration=000000/w7-000000.pa")
    assert f"; {left:,} bytes could not be read (steps that are damaged or" in line
    assert line.endswith("never acknowledged): they are in quarantine/w7-000000.jsonl")


def test_a_store_that_our_recorder_wrote_is_sound(tmp_path: Path):
    with (
        StepRecorder(tmp_path / "store", run_id="r0", iteration=3, worker_id="w7") as recorder,
        recorder.trajectory(task_id="kitchen") as steps,
    ):
        steps.log(state="A", action="a", next_state="B", reward=1.0, response_ids=[1, 2])
        steps.end(success=True)
    result = graphcredit_check(tmp_path / "store")
    assert result.returncode == 0
    assert result.stdout == (
        "1 step shard, 1 step, 1 rollout (0 incomplete): 0 errors, 0 notices\n"
    )
