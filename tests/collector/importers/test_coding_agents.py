"""Agents that write code: mini-swe-agent and OpenHands."""

import json
from pathlib import Path

from tests.collector.importers.logs import called, said, write_json, write_lines
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.collector.importers.rows import (
    mini_swe_agent,
    openhands_action,
    openhands_result,
    openhands_row,
)

STEP = ("state", "action", "thought")


def test_mini_swe_agent_has_commands_in_blocks_and_an_exit(tmp_path: Path):
    log = write_json(tmp_path / "django-1" / "django-1.traj.json", mini_swe_agent())
    report = imported(log, tmp_path / "store")
    assert (report.num_files, report.num_unjudged) == ({"mini-swe-agent": 1}, 1)
    assert brief(tmp_path / "store", "task_id", *STEP) == [
        ("django-1", "Fix the bug.", "ls /", "I look."),
        ("django-1", "bin etc", "submit", "I submit."),
    ]
    last = steps_of(tmp_path / "store")[1]
    assert json.loads(last["extra"])["after"] == [said("exit", "diff")]
    assert last["temperature"] == 0.5


def test_mini_swe_agent_with_calls_and_with_responses(tmp_path: Path):
    texts = [said("user", "Fix."), called("bash", command="ls"), said("tool", "bin")]
    call = {"type": "function_call", "call_id": "1", "name": "bash", "arguments": "{}"}
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix."}]},
        {"object": "response", "output": [call]},
        {"type": "function_call_output", "call_id": "1", "output": "bin"},
        {"object": "response", "output": [call]},
        said("exit", ""),
    ]
    limits = mini_swe_agent(messages=items, instance_id="b")
    limits["info"]["exit_status"] = "LimitsExceeded"
    log = write_lines(tmp_path / "a.jsonl", mini_swe_agent(messages=texts), limits)
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "task_id", "state", "action") == [
        ("a", "Fix.", 'bash({"command": "ls"})'),
        ("b", "Fix.", "bash({})"),
        ("b", "bin", "bash({})"),
    ]


def test_openhands_events_are_actions_and_observations(tmp_path: Path):
    row = openhands_row(
        {"source": "agent", "action": "system", "args": {"content": "You fix."}},
        {"source": "user", "action": "message", "args": {"content": "Fix it."}},
        {"source": "user", "action": "recall", "args": {}},
        {"source": "environment", "observation": "agent_state_changed", "content": ""},
        openhands_action("ls", "I look."),
        openhands_result("a.py"),
        {"source": "agent", "action": "finish", "args": {"outputs": {}, "thought": "Done."}},
        test_result={"report": {"resolved": True}},
    )
    report = imported(write_lines(tmp_path / "output.jsonl", row), tmp_path / "store")
    assert report.num_files == {"openhands": 1}
    assert report.left_out == {"event that the model did not see": 2}
    assert brief(tmp_path / "store", "task_id", *STEP, "success") == [
        ("repo-1", "Fix it.", 'run({"command": "ls"})', "I look.", None),
        ("repo-1", "a.py", "finish({})", "Done.", True),
    ]


def test_openhands_joins_the_actions_of_one_response(tmp_path: Path):
    answer = {"content": "Both.", **{k: v for k, v in called("run", n=1).items() if k != "content"}}
    told = {
        "tool_call_metadata": {"model_response": {"id": "r1", "choices": [{"message": answer}]}}
    }
    row = openhands_row(
        openhands_action("a", "Both.", **told),
        openhands_result("one"),
        openhands_action("b", "", **told),
        openhands_result("two"),
        openhands_action("c", "Next."),
    )
    imported(write_lines(tmp_path / "output.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", *STEP) == [
        ("Fix it.", 'run({"n": 1})', "Both."),
        ("one\n\ntwo", 'run({"command": "c"})', "Next."),
    ]


def test_openhands_of_the_oldest_kind_have_pairs_and_no_sources(tmp_path: Path):
    pairs = [
        [{"action": "message", "content": "Fix it."}, {"observation": "null", "content": ""}],
        [{"action": "run", "command": "ls", "thought": ""}, openhands_result("a.py")],
        [{"action": "message", "content": "Which file?"}, {"action": "message", "content": "a.py"}],
    ]
    issue = {"owner": "o", "repo": "r", "number": 5}
    row = {"issue": issue, "history": pairs, "success": False}
    imported(write_lines(tmp_path / "output.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", "task_id", "state", "action", "success") == [
        ("o/r#5", "Fix it.", 'run({"command": "ls"})', None),
        ("o/r#5", "a.py", "Which file?", False),
    ]


def test_events_of_the_agent_sdk(tmp_path: Path):
    def action(number: int, response: str) -> dict[str, object]:
        return {
            "kind": "ActionEvent",
            "source": "agent",
            "thought": [{"type": "text", "text": "I look."}] if number == 1 else [],
            "tool_name": "terminal",
            "tool_call": {"id": str(number), "name": "terminal", "arguments": f'{{"n": {number}}}'},
            "llm_response_id": response,
        }

    def seen(text: str) -> dict[str, object]:
        parts = [{"type": "text", "text": text}]
        return {"kind": "ObservationEvent", "observation": {"content": parts}}

    asked = {"kind": "MessageEvent", "source": "user", "llm_message": said("user", "Fix it.")}
    row = openhands_row(
        {"kind": "SystemPromptEvent", "system_prompt": {"type": "text", "text": "You fix."}},
        asked,
        action(1, "r1"),
        action(2, "r1"),
        seen("one"),
        seen("two"),
        {"kind": "ConversationStateUpdateEvent", "key": "x"},
        action(3, "r2"),
        {"kind": "AgentErrorEvent", "error": "no such tool"},
    )
    report = imported(write_lines(tmp_path / "output.jsonl", row), tmp_path / "store")
    assert report.left_out == {"event that the model did not see": 1}
    assert brief(tmp_path / "store", *STEP, "is_action_valid") == [
        ("Fix it.", 'terminal({"n": 1})\nterminal({"n": 2})', "I look.", True),
        ("one\n\ntwo", 'terminal({"n": 3})', None, False),
    ]


def test_openhands_runs_with_errors(tmp_path: Path):
    event = openhands_action("ls", "")
    rows = [
        openhands_row(event, error="RuntimeError: no container"),
        openhands_row(event, error="Agent reached maximum iteration", resolved=False),
        openhands_row(event, {"foo": 1}),
    ]
    report = imported(write_lines(tmp_path / "output.jsonl", *rows), tmp_path / "store")
    assert report.left_out == {"run with an error and without a verdict": 1}
    assert (report.num_truncated, report.num_bad_rows) == (1, 1)
