"""From `collect --env alfworld` to `audit`, as it is typed."""

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from graphcredit.store import open_store, read_steps
from tests.cli.in_process import completed
from tests.collector.household import PROBLEM, write_file, write_game

pytest.importorskip(
    "fast_downward", reason="the planner is missing: pip install 'graphcredit[alfworld]'"
)

GOOD = "pick_and_place_simple-Pen-None-Box-1"


def steps_of(store: Path) -> list[dict[str, Any]]:
    steps = [step for table in read_steps(open_store(store)) for step in table.to_pylist()]
    return sorted(steps, key=lambda step: (step["trajectory_id"], step["step_index"]))


def collect(store: Path, data: Path, *arguments: str) -> "tuple[int, str]":
    """Collect with an oracle that errs in half of its actions; return exit code and report."""
    with patch.dict(os.environ, ALFWORLD_DATA=str(data)):
        done = completed(
            *("collect", store, "--env", "alfworld", "--oracle"),
            *("--policy", "oracle:0.5", "--max-steps", "12", *arguments),
        )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_games_that_cannot_be_played_are_named_and_the_others_are_played(tmp_path: Path):
    write_game(tmp_path, GOOD)
    exits = PROBLEM.replace("PenType - otype", "PenType - otype PenType - otype")
    write_game(tmp_path, "pick_two_obj_and_place-Pen-None-Box-2", pddl_problem=exits)
    write_file(tmp_path, "look_at_obj_in_light-Pen-None-Box-3", "{broken")
    code, report = collect(
        tmp_path / "store", tmp_path, "--group-size", "4", "--workers", "0", "--seed", "3"
    )
    assert code == 1
    assert "4 rollouts of 3 tasks played" in report
    assert "2 tasks could not be played" in report
    lines = [line for line in report.splitlines() if "cannot be played" in line]
    assert len(lines) == 2
    assert "alfworld-valid_seen/look_at_obj_in_light-Pen-None-Box-3/trial_T1: " in lines[0]
    assert "must be a JSON file" in lines[0]
    assert "alfworld-valid_seen/pick_two_obj_and_place-Pen-None-Box-2/trial_T1: " in lines[1]
    assert "duplicate object" in lines[1]
    steps = steps_of(tmp_path / "store")
    assert {step["task_id"] for step in steps} == {f"alfworld-valid_seen/{GOOD}/trial_T1"}
    assert {step["oracle_distance"] for step in steps if step["success"]} == {1.0}


@pytest.mark.slow
@pytest.mark.skipif(
    "ALFWORLD_DATA" not in os.environ,
    reason="the published games are missing: set ALFWORLD_DATA to what alfworld-download fetched",
)
def test_a_log_of_published_games_can_be_credited_and_judged(tmp_path: Path):
    root = tmp_path / "store"
    done = completed(
        *("collect", root, "--env", "alfworld", "--games", "valid_seen:pick_and_place_simple"),
        *("--tasks", "2", "--policy", "oracle:0.7", "--oracle", "--workers", "0"),
    )
    assert done.returncode == 0, done.stderr
    for rules in ((), ("--set", "merge.normalise=alfworld")):
        done = completed("credit", root, "-e", "grpo", "-e", "graphgpo", *rules)
        assert done.returncode == 0, done.stderr
        measures = json.loads(completed("audit", root, "--json").stdout)["numbers"]
        ranked = measures["rank correlation with true progress"]
        assert ranked["graphgpo step"] > 0.3
        assert ranked["grpo"] < 0.3
    assert "0 errors, 0 notices" in completed("check", root).stdout
