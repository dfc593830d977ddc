"""`graphcredit audit` as a user types it, and what `graphcredit credit` says of it."""

import json
import subprocess
from pathlib import Path

from tests.cli.in_process import completed as graphcredit
from tests.credit.audit_worlds import renamed, sound, sound_group, win
from tests.worlds import write_store


def _faulty(root: Path) -> list[str]:
    """Write a store with a copy in one of 2 groups, and a hostile name; return the arguments."""
    rows = sound_group()
    other = [*sound_group("t1"), *win("x", task="t1", rewards=[0, 0])]
    return [str(write_store(root, [*rows, *renamed(rows[:2], "evil\x1b[2J")], other).root)]


def _lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    return result.stdout.splitlines()


def test_errors_come_first_name_place_and_remedy_and_give_exit_code_1(tmp_path: Path):
    result = graphcredit("audit", *_faulty(tmp_path / "s"))
    assert result.returncode == 1
    first, _, error, place, remedy, _, warning, *rest = _lines(result)
    assert first == "1 error, 1 warning, 0 to know"
    assert error.startswith(
        "error: copied_trajectories: 2 of 10 complete rollouts (20.0%) are the same rollout"
    )
    assert place == "    t0 (r0, iteration 0): evil\\x1b[2J, t0-a (2 steps)"
    assert remedy.startswith("    remedy: keep one of each")
    assert warning.startswith("warning: success_without_reward: 1 of 6 successful rollouts")
    assert any(line.startswith("group sizes") and line.endswith("5: 2") for line in rest)
    assert rest[-1].startswith("not checked, because there is no credit: ")
    assert " stale_credit, " in rest[-1]
    assert "graphcredit credit STORE" in rest[-1]


def test_a_sound_store_gives_exit_code_0(tmp_path: Path):
    result = graphcredit("audit", sound(tmp_path / "s").root)
    assert (result.returncode, result.stderr) == (0, "")
    assert _lines(result)[0] == "0 errors, 0 warnings, 0 to know"
    assert "not checked" not in result.stdout


def test_the_report_as_json_is_all_that_stdout_holds(tmp_path: Path):
    result = graphcredit("audit", *_faulty(tmp_path / "s"), "--json", "--run", "r0")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    error = report["findings"][0]
    assert (error["check"], error["severity"]) == ("copied_trajectories", "error")
    assert (error["number"], error["total"], error["share"]) == (2, 10, 0.2)
    assert error["places"] == [
        {
            "run_id": "r0",
            "iteration": 0,
            "task_id": "t0",
            "number": 2,
            "detail": "evil\x1b[2J, t0-a (2 steps)",
        }
    ]
    assert report["numbers"]["group sizes"] == {"5": 2}
    assert report["skipped"]["stale_credit"] == "credit"


def test_more_places_than_are_shown_are_counted(tmp_path: Path):
    rows = [row for number in range(7) for row in win("x", task=f"t{number}")]
    result = graphcredit("audit", write_store(tmp_path / "s", rows).root)
    assert "    and 2 more" in _lines(result)


def test_a_threshold_changes_what_is_an_error(tmp_path: Path):
    rows = [*sound_group(), *sound_group("t1"), *win("x", task="t2")]
    root = write_store(tmp_path / "s", rows).root
    assert graphcredit("audit", root).returncode == 1
    result = graphcredit("audit", root, "--max-singleton-share", "0.5")
    assert result.returncode == 0
    assert "info: singleton_groups: 1 of 3 groups (33.3%)" in result.stdout


def test_wrong_use_exits_with_2(tmp_path: Path):
    root = sound(tmp_path / "s").root
    for arguments, message in (
        ((tmp_path,), "has no store.json"),
        ((root, "--run", "r9"), "found none for run r9"),
        ((root, "--max-dead-share", "7"), "audit.max_dead_share must be at most 1"),
    ):
        result = graphcredit("audit", *arguments)
        assert result.returncode == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr
