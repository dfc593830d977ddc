"""Runs that agents log as their own objects become the steps that their models took."""

from pathlib import Path
from typing import Any

import pytest

from tests.collector.importers.logs import said, write_json, write_lines
from tests.collector.importers.read_back import brief, imported

STEP = ("state", "action", "thought")

TASK = {"task": "How many?", "task_images": None}


def smolagents(number: int, name: str, arguments: Any, seen: str | None, **more: Any) -> Any:
    call = {"id": f"c{number}", "type": "function"}
    return {
        "step_number": number,
        "model_output": f"I use {name}.",
        "observations": seen,
        "model_input_messages": [said("user", "How many? All of it.")],
        "tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}],
        **more,
    }


STEPS = [
    TASK,
    {"plan": "Count them.", "model_output_message": said("assistant", "Count them.")},
    smolagents(1, "python", "count()", None, error={"type": "Error", "message": "no count"}),
    {  # a call that failed, as smolagents 1.26 writes it
        **smolagents(2, "count", {}, None, error={"message": "no what"}),
        "tool_calls": [],
        "model_output_message": smolagents(2, "count", {}, None),
    },
    smolagents(3, "final_answer", {"answer": 2}, "2", action_output=2, is_final_answer=True),
]


@pytest.mark.parametrize("is_row", [False, True])
def test_smolagents(tmp_path: Path, is_row: bool):
    row = {"steps": STEPS, "output": 2, "state": "success", "task_id": "t", "reward": 0.0}
    log = write_lines(tmp_path / "a.jsonl", row) if is_row else write_json(tmp_path / "a", STEPS)
    report = imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", *STEP) == [
        ("How many?", "Count them.", None),
        ("How many?", "python(count())", "I use python."),
        ("no count", "count({})", "I use count."),
        ("no what", 'final_answer({"answer": 2})', "I use final_answer."),
    ]
    assert (report.num_unjudged, report.num_failed) == ((0, 1) if is_row else (1, 0))
    assert not [note for note in report.notes if "in no step" in note]


def test_browser_use_sees_pages_and_what_its_actions_brought(tmp_path: Path):
    def step(url: str, action: dict[str, Any] | None, **result: Any) -> dict[str, Any]:
        output = {"memory": "none yet", "next_goal": f"leave {url}", "action": [action]}
        tabs = [{"url": url, "title": "T", "page_id": 1}, {"url": "other", "page_id": 2}]
        state = {"url": url, "title": "T", "tabs": tabs, "screenshot": "abc", "x": None}
        return {"model_output": output if action else None, "result": [result], "state": state}

    history = [
        step("a", None, error="no answer"),
        step("a", {"click": {"index": 3, "xpath": None}}, extracted_content="clicked"),
        step("b", {"done": {"text": "2"}}, is_done=True, success=True, extracted_content="2"),
    ]
    report = imported(write_json(tmp_path / "h.json", {"history": history}), tmp_path / "store")
    first, last = brief(tmp_path / "store", "task_id", *STEP, "success")
    seen = "a\nT\nother\n\nno answer\n\na\nT\nother"
    assert first == ("h", seen, 'click({"index": 3})', "none yet\nleave a", None)
    seen = "clicked\n\nb\nT\nother"
    assert last == ("h", seen, 'done({"text": "2"})', "none yet\nleave b", True)
    assert not [note for note in report.notes if "in no step" in note]


def browser_try(folder: Path, port: int, *clicked: str, passed: bool) -> None:
    """Write a history as a harness does: each try in a folder, from an address of its own."""
    address = f"http://localhost:{port}"
    request = f"<user_request>\nAt {address}: turn Social off.\n</user_request>"
    opened = {"state": {"url": address, "title": "Initial Actions", "tabs": []}}
    opened |= {"model_output": {"action": [{"navigate": {"url": address}}]}, "result": [{}]}
    history: list[Any] = [opened]
    for number, name in enumerate(clicked):
        index = port + number
        page = f"Current tab: {port:X}\nTab {port:X}: {address}\n*[{index}]<button />\n\t{name}"
        history.append(
            {
                "model_output": {"action": [{"click": {"index": index}}], "plan_update": ["go on"]},
                "result": [{"is_done": True, "success": True}],
                "state": {
                    "url": address,
                    "interacted_element": [{"node_name": "BUTTON", "ax_name": name}],
                },
                "state_message": f"{request}\n<browser_state>\n{page}\n</browser_state>",
            }
        )
    write_json(folder / "history.json", {"history": history})
    write_json(folder / "result.json", {"task_id": "t1", "passed": passed})


def test_tries_of_browser_use_meet_on_a_page_and_are_judged_by_the_harness(tmp_path: Path):
    browser_try(tmp_path / "log" / "run-1" / "t1", 40961, "Social", "Save", passed=True)
    browser_try(tmp_path / "log" / "run-2" / "t1", 45058, "Social", passed=False)
    write_json(
        tmp_path / "log" / "run-2" / "t2" / "result.json", {"task_id": "t2", "passed": False}
    )
    report = imported(tmp_path / "log", tmp_path / "store")
    social, save = "Current tab: \nTab : http://\n<button />\n\tSocial", "Save"
    click = 'click({"ax_name": "%s", "node_name": "BUTTON"})'
    seen = brief(tmp_path / "store", "state", "action", "success")
    assert sorted(seen, key=str) == sorted(
        [
            (social, click % "Social", None),
            (social.replace("Social", save), click % "Save", True),
            (social, click % "Social", False),
        ],
        key=str,
    )
    [task] = {task for (task,) in brief(tmp_path / "store", "task_id")}
    assert task.startswith("At http://: turn Social off.")
    [observation] = {o for (o,) in brief(tmp_path / "store", "observation") if "40962" in o}
    assert f"*[40962]<button />\n\t{save}" in observation
    assert any("result.json beside the log (2)" in note for note in report.notes)
    assert not [note for note in report.notes if "says of itself" in note]
    assert [
        n for n in report.notes if n.startswith("1 file with verdicts in folders without a log")
    ]


def test_what_browser_use_says_of_itself_is_told_where_nobody_else_judged(tmp_path: Path):
    browser_try(tmp_path / "log" / "t1", 40961, "Save", passed=False)
    (tmp_path / "log" / "t1" / "result.json").unlink()
    report = imported(tmp_path / "log", tmp_path / "store")
    assert (report.num_success, report.num_failed) == (1, 0)
    assert [note for note in report.notes if "says of itself" in note]
