"""Dumps of verl, and what verl-agent makes of them."""

from pathlib import Path

import pytest

from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import brief, imported
from tests.collector.importers.rows import verl_row


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


ROOM = (
    "Prior to this step, you have already taken 1 step(s). Your current observation is: hall\n"
    "Your admissible actions of the current situation are: ['east'\n 'west'].\n\nNow act.\n"
)
SEARCH = "Your question: who?\n\nalready taken 1 step(s). Now it's your turn: <search>."


@pytest.mark.parametrize("prompt", [ROOM, SEARCH])
def test_steps_of_verl_agent_are_refused_with_what_to_do(prompt: str, tmp_path: Path):
    rows = [verl_row("<action>east</action>", input=prompt) for _ in range(3)]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (0, 3)
    assert "Write its batch as steps" in report.bad_rows[0].reason


def test_a_batch_of_verl_agent_as_steps(tmp_path: Path):
    """The rows that docs/how-to/trainers.md makes of a batch, in its order."""
    made = [("a", "hall", "go", 0.0), ("b", "hall", "stay", 0.0), ("a", "room", "go", 1.0)]
    names = ("trajectory_id", "state", "action", "reward")
    rows = [{**dict(zip(names, each, strict=True)), "task_id": "g"} for each in made]
    report = imported(write_lines(tmp_path / "7.jsonl", *rows), tmp_path / "store")
    assert (report.num_groups, report.num_success, report.num_failed) == (1, 1, 1)
    assert brief(tmp_path / "store", *names) == [("a", *made[0][1:]), ("a", *made[2][1:]), made[1]]
