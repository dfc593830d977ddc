"""From `collect --env sokoban` to `audit`, as it is typed."""

import json
from pathlib import Path
from typing import Any

from graphcredit.store import open_store, read_steps
from tests.cli.in_process import completed


def graphcredit(*arguments: str | Path) -> str:
    done = completed(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def collect(store: Path, *arguments: str) -> list[dict[str, Any]]:
    """Collect with an oracle that errs in 3 of 10 moves, and return all steps, sorted."""
    graphcredit(
        *("collect", store, "--env", "sokoban", "--games", "6x6b2", "--max-steps", "30"),
        *("--policy", "oracle:0.3", "--oracle", *arguments),
    )
    steps = [step for table in read_steps(open_store(store)) for step in table.to_pylist()]
    return sorted(steps, key=lambda step: (step["trajectory_id"], step["step_index"]))


def test_graph_estimators_credit_the_moves_that_lead_nearer(tmp_path: Path):
    root = tmp_path / "store"
    steps = collect(root, "--tasks", "16", "--group-size", "8", "--workers", "0")
    ends = [step["success"] for step in steps if step["success"] is not None]
    assert len(ends) == 128
    assert 60 < sum(ends) < 128
    assert {step["oracle_distance"] for step in steps if step["success"]} == {1.0}
    _check_that_dead_ends_stay_dead(steps)
    graphcredit("credit", root, "-e", "grpo", "-e", "graphgpo")
    assert "0 errors, 0 notices" in graphcredit("check", root)
    measures = json.loads(graphcredit("audit", root, "--json"))["numbers"]
    ranked = measures["rank correlation with true progress"]
    assert ranked["graphgpo step"] > 0.5
    assert ranked["grpo"] < 0.2
    assert measures["steps without a signal"]["graphgpo"] < 0.2


def _check_that_dead_ends_stay_dead(steps: list[dict[str, Any]]) -> None:
    dead = [step for step in steps if step["oracle_distance"] is None]
    assert 0 < len(dead) < len(steps)
    assert {step["next_oracle_distance"] for step in dead} == {None}
    assert {step["success"] for step in dead} == {None, False}
