"""Dumps of trainers: NeMo-RL, verl, verl-agent, AReaL."""

from pathlib import Path

import pytest

from graphcredit.collector.importers.logs import jsonl
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.collector.importers.rows import areal_row, nemo_rl_row, verl_agent_row, verl_row

STEP = ("state", "action", "next_state", "reward")


def test_nemo_rl_has_a_step_for_each_run_of_sampled_tokens(tmp_path: Path):
    log = write_lines(tmp_path / "train_data_step3.jsonl", nemo_rl_row(), nemo_rl_row(0.0))
    report = imported(log, tmp_path / "store")
    assert (report.num_files, report.num_groups) == ({"nemo-rl": 1}, 1)
    assert (report.num_success, report.num_failed, report.num_with_tokens) == (1, 1, 4)
    found = brief(tmp_path / "store", "iteration", *STEP[:3], "prompt_ids", "response_ids")
    assert found[:2] == [
        (3, "question", "search", "result", [1, 2], [3, 4]),
        (3, "result", "answer", found[1][3], [1, 2, 3, 4, 5], [6, 7]),
    ]
    logprobs = steps_of(tmp_path / "store")[1]["response_logprobs"]
    assert logprobs == pytest.approx([-0.3, -0.4])


def test_nemo_rl_without_texts_names_them_by_their_tokens(tmp_path: Path):
    row = nemo_rl_row(content=["only the answer"], token_loss_mask=[[0, 0, 0, 0, 0, 1, 1, 0]])
    untold = nemo_rl_row()
    del untold["content"]
    log = write_lines(tmp_path / "train_data_step3.jsonl", row, untold)
    imported(log, tmp_path / "store")
    texts = {tuple(step) for step in brief(tmp_path / "store", "state", "action")}
    assert {action for _, action in texts} >= {"only the answer"}
    assert {state.split(" #")[0] for state, _ in texts} == {"5 tokens", "2 tokens", "1 tokens"}


def test_nemo_rl_leaves_validation_out(tmp_path: Path):
    row = {"content": ["x"], "rewards": [1.0], "idx": 0}
    report = imported(write_lines(tmp_path / "val_data_step3.jsonl", row), tmp_path / "store")
    assert report.left_out == {"sample of validation": 1}


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
    log = write_lines(
        tmp_path / "7.jsonl",
        verl_agent_row(HALL, ROOM, now="hall", action="east", score=10.0),
        verl_agent_row(now="hall", action="east", score=10.0),
        verl_agent_row(HALL, now="room", action="west", score=10.0),
        verl_agent_row(now="hall", action="east", score=0.0),
        verl_agent_row(HALL, now="room", action="dance", score=-0.1),
    )
    report = imported(log, tmp_path / "store")
    assert (report.num_files, report.num_groups) == ({"verl-agent": 1}, 1)
    assert (report.num_success, report.num_failed, report.left_out) == (1, 1, {})
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
        verl_agent_row(HALL, now="room", action="west"),
        verl_agent_row(now="hall", action="east"),
    ]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert (report.num_files, report.num_trajectories) == ({"verl-agent": 1}, 1)
    assert report.num_steps == 2


def test_verl_agent_leaves_out_what_nobody_can_tell(tmp_path: Path):
    """Two rollouts differ in their first step only, which the prompt of the fourth forgot."""
    one, two = ("hall", "east"), ("hall", "west")
    rows = [verl_agent_row(now="hall", action=first[1]) for first in (one, two)]
    rows += [verl_agent_row(first, now="room", action="west") for first in (one, two)]
    rows += [verl_agent_row(first, ROOM, now="room", action="west") for first in (one, two)]
    rows.append(verl_agent_row(one, ROOM, ROOM, now="attic", action="east"))
    rows.append(verl_agent_row(now="cave", action="east"))
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert report.left_out == {"row of a step that may belong to several trajectories": 7}
    assert brief(tmp_path / "store", "state") == [("cave",)]


def test_verl_agent_counts_steps_whose_step_before_is_missing(tmp_path: Path):
    rows = [verl_agent_row(HALL, now="room", action="west"), verl_agent_row(now="x", action="y")]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert report.left_out == {"row of a step whose step before is not in the file": 1}
    assert report.num_trajectories == 1


def test_verl_agent_takes_the_ids_of_a_log_that_has_them(tmp_path: Path):
    rows = [
        verl_agent_row(HALL, now="room", action="west", traj_uid="a", uid="g"),
        verl_agent_row(now="hall", action="east", traj_uid="a", uid="g"),
        verl_agent_row(now="hall", action="east", traj_uid="b", uid="g"),
    ]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert (report.num_trajectories, report.num_groups, report.num_steps) == (2, 1, 3)


def test_verl_agent_without_history_is_refused(tmp_path: Path):
    rows = [verl_agent_row(now="hall", action="east"), verl_agent_row(now="hall", action="west")]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (0, 1)
    assert "env.history_length > 0" in report.bad_rows[0].reason


def test_verl_agent_reads_searches(tmp_path: Path):
    def prompt(history: str, count: int) -> str:
        past = f"already taken {count} step(s). <search> </search>. History:\n{history}\n\n"
        return f"Your question: who?\n\n{past if count else ''}Now it's your turn: <search>."

    rows = [
        verl_row("<think>a</think><search>x</search>", 0.0, input=prompt("", 0)),
        verl_row(
            "<answer>me</answer>",
            0.0,
            input=prompt("Step 1:<search>x</search> <information>r</information>\n", 1),
        ),
    ]
    imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert brief(tmp_path / "store", *STEP[:2]) == [
        ("who?", "<search>x</search>"),
        ("<information>r</information>", "<answer>me</answer>"),
    ]


def test_areal_has_segments_and_versions(tmp_path: Path):
    whole = areal_row(sample_idx=2, segments=None, head_version=3)
    report = imported(write_lines(tmp_path / "42.jsonl", areal_row(), whole), tmp_path / "store")
    assert (report.num_files, report.num_groups, report.num_steps) == ({"areal": 1}, 1, 3)
    names = ("task_id", "iteration", "state", "action", "policy_version")
    assert brief(tmp_path / "store", *names) == [
        ("42", 3, "question", "search", "2-3"),
        ("42", 3, "result", "answer", "2-3"),
        ("42", 3, "question", "search result answer", "3"),
    ]
