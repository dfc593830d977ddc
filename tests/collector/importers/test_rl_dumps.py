"""Dumps of trainers: verl and verl-agent."""

from pathlib import Path

import pytest

from graphcredit.collector.importers.logs import jsonl
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.collector.importers.rows import verl_agent_row, verl_row

STEP = ("state", "action", "next_state", "reward")


def test_verl_is_cut_at_the_results_of_tools(tmp_path: Path):
    called = "<think>hm</think>call\nuser\n<tool_response>\n6\n</tool_response>\nassistant\nsix"
    searched = "<search>3+3</search><information>6</information>six"
    log = write_lines(
        tmp_path / "4.jsonl", verl_row(called, uid="u"), verl_row(searched, 0.0, uid="u")
    )
    report = imported(log, tmp_path / "store")
    assert (report.num_files, report.num_groups) == ({"verl": 1}, 1)
    names = ("task_id", "iteration", "action", "thought", "reward", "success")
    assert sorted(brief(tmp_path / "store", *names)) == [
        ("u", 4, "<search>3+3</search>", None, 0.0, None),
        ("u", 4, "call", "hm", 0.0, None),
        ("u", 4, "six", None, 0.0, False),
        ("u", 4, "six", None, 1.0, True),
    ]
    states = {state for (state,) in brief(tmp_path / "store", "state")}
    assert "<information>6</information>" in states


HALL, ROOM = ("hall", "east"), ("room", "west")


def test_verl_agent_joins_the_steps_of_a_shuffled_dump(tmp_path: Path):
    one, two = ({"traj_uid": name, "uid": "g"} for name in "ab")
    log = write_lines(
        tmp_path / "7.jsonl",
        verl_agent_row(HALL, ROOM, now="hall", action="east", score=10.0, **one),
        verl_agent_row(now="hall", action="east", score=10.0, **one),
        verl_agent_row(HALL, now="room", action="west", score=10.0, **one),
        verl_agent_row(now="hall", action="east", score=0.0, **two),
        verl_agent_row(HALL, now="room", action="dance", score=-0.1, **two),
    )
    report = imported(log, tmp_path / "store")
    assert (report.num_files, report.num_groups) == ({"verl-agent": 1}, 1)
    assert (report.num_by_return, report.left_out) == (2, {})
    steps = steps_of(tmp_path / "store")
    by_trajectory: dict[str, list[tuple[object, ...]]] = {}
    for step in steps:
        row = tuple(step[name] for name in (*STEP[:2], "reward", "thought"))
        by_trajectory.setdefault(step["trajectory_id"], []).append(row)
    assert sorted(by_trajectory.values(), key=len) == [
        [("hall", "east", 0.0, "hm"), ("room", "dance", -0.1, "hm")],
        [("hall", "east", 0.0, "hm"), ("room", "west", 0.0, "hm"), ("hall", "east", 10.0, "hm")],
    ]
    assert {tuple(step["admissible_actions"]) for step in steps} == {("east", "west")}
    assert steps[0]["iteration"] == 7


def test_a_dump_of_verl_agent_is_joined_over_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 100)
    rows = [
        verl_agent_row(HALL, now="room", action="west", traj_uid="a"),
        verl_agent_row(now="hall", action="east", traj_uid="a"),
    ]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert (report.num_files, report.num_trajectories) == ({"verl-agent": 1}, 1)
    assert report.num_steps == 2


def test_verl_agent_reads_searches(tmp_path: Path):
    def prompt(history: str, count: int) -> str:
        past = f"already taken {count} step(s). <search> </search>. History:\n{history}\n\n"
        return f"Your question: who?\n\n{past if count else ''}Now it's your turn: <search>."

    rows = [
        verl_row("<think>a</think><search>x</search>", 0.0, input=prompt("", 0), traj_uid="a"),
        verl_row(
            "<answer>me</answer>",
            0.0,
            input=prompt("Step 1:<search>x</search> <information>r</information>\n", 1),
            traj_uid="a",
        ),
    ]
    imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert brief(tmp_path / "store", *STEP[:2]) == [
        ("who?", "<search>x</search>"),
        ("<information>r</information>", "<answer>me</answer>"),
    ]


def test_rows_of_verl_agent_without_an_id_are_refused_with_the_line_that_writes_it(tmp_path: Path):
    rows = [verl_agent_row(now="hall", action="east"), verl_agent_row(now="hall", action="west")]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (0, 1)
    assert 'batch.non_tensor_batch["traj_uid"]' in report.bad_rows[0].reason
