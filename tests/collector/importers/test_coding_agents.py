"""Agents that write code: mini-swe-agent and OpenHands."""

import json
from pathlib import Path

import pytest

from graphcredit.collector.importers.table import candidates
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


@pytest.mark.parametrize("chosen", [0, None])
def test_the_attempts_of_a_retry_are_trajectories(tmp_path: Path, chosen: int | None):
    attempts = [
        {"trajectory": [{"action": action, "observation": "ok"}], "info": {"exit_status": status}}
        for action, status in (("submit", "submitted"), ("ls", "exit_cost"))
    ]
    own = {} if chosen is None else attempts[chosen]
    log = write_json(tmp_path / "a-1.traj", {"attempts": attempts, **own})
    imported(log, tmp_path / "store", success="info.exit_status==submitted")
    found = brief(tmp_path / "store", "task_id", "trajectory_id", "action", "success")
    labels = {action: name.rpartition("-")[0] for _, name, action, _ in found}
    first = "a-1" if chosen == 0 else "a-1:attempt-0"
    assert labels == {"submit": first, "ls": "a-1:attempt-1"}
    assert {(action, success) for *_, action, success in found} == {("submit", True), ("ls", False)}


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


def test_openhands_joins_actions_also_without_the_whole_response(tmp_path: Path):
    told = {"tool_call_metadata": {"model_response": {"id": "r1"}}}
    row = openhands_row(
        openhands_action("a", "Both.", **told),
        openhands_result("one"),
        openhands_action("b", "", **told),
        openhands_result("two"),
        openhands_action("c", "Next."),
    )
    imported(write_lines(tmp_path / "output.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", *STEP) == [
        ("Fix it.", 'run({"command": "a"})\nrun({"command": "b"})', "Both."),
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


SDK = [
    {
        "kind": "SystemPromptEvent",
        "source": "agent",
        "system_prompt": {"type": "text", "text": "s"},
    },
    {"kind": "MessageEvent", "source": "user", "llm_message": said("user", "Fix it.")},
    {
        "kind": "ActionEvent",
        "source": "agent",
        "llm_response_id": "r",
        "tool_name": "terminal",
        "thought": [{"type": "text", "text": "Look."}],
        "action": {"command": "ls"},
    },
    {
        "kind": "ObservationEvent",
        "source": "environment",
        "observation": {"content": "a.py", "metadata": {"prefix": "", "suffix": " [exit 0]"}},
    },
    {"kind": "MessageEvent", "source": "agent", "llm_message": said("assistant", "Done.")},
]


def test_a_folder_of_events_is_a_trajectory_in_the_order_of_its_numbers(tmp_path: Path):
    for number, event in enumerate(SDK, start=8):
        write_json(tmp_path / "c1" / "events" / f"event-{number}-x{number}.json", event)
    write_json(tmp_path / "c1" / "base_state.json", {"id": "c1", "agent": {}})
    report = imported(tmp_path, tmp_path / "store")
    assert brief(tmp_path / "store", *STEP) == [
        ("Fix it.", 'terminal({"command": "ls"})', "Look."),
        ("a.py [exit 0]", "Done.", None),
    ]
    assert (report.num_trajectories, report.num_unjudged) == (1, 1)


@pytest.mark.parametrize("around", [None, "trajectory", "events"])
def test_saved_trajectories_are_lists_of_events(tmp_path: Path, around: str | None):
    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Fix it."}},
        {"id": 1, **openhands_action("ls", "Look.")},
        {"id": 2, **openhands_result("a.py")},
        {"id": 3, "source": "agent", "action": "finish", "args": {"thought": "Done."}},
    ]
    log = write_json(tmp_path / "a.json", events if around is None else {around: events})
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "state", "thought") == [
        ("Fix it.", "Look."),
        ("a.py", "Done."),
    ]


def test_steps_with_an_action_are_no_events_of_openhands():
    row = {"episode": 1, "observation": "hall", "action": "go", "source": "me"}
    assert "openhands-events" not in [each.name for each in candidates(row, Path("a.jsonl"))]


def test_the_completions_of_a_folder_are_one_conversation(tmp_path: Path):
    folder = tmp_path / "llm_completions" / "repo-1"
    messages = [said("user", "Fix it.")]
    answers = [called("ls", dir="."), said("assistant", "Done.")]
    for number, answer in enumerate(answers):
        response = {"id": f"r{number}", "choices": [{"message": answer}]}
        call = {"messages": messages, "response": response, "cost": 0.1, "timestamp": 9.5 + number}
        write_json(folder / f"m-{9 + number}.5.json", call)
        messages = [*messages, answer, {**said("tool", "a.py"), "tool_call_id": "c1"}]
    report = imported(tmp_path, tmp_path / "store")
    assert brief(tmp_path / "store", "task_id", "state", "action") == [
        ("repo-1", "Fix it.", 'ls({"dir": "."})'),
        ("repo-1", "a.py", "Done."),
    ]
    assert report.num_trajectories == 1
