"""Sessions of coding agents become the steps that their models took."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.report import ImportReport
from tests.collector.importers.logs import said, write_json, write_lines
from tests.collector.importers.read_back import brief, imported

STEP = ("state", "action", "thought")


def unread(report: ImportReport) -> list[str]:
    return [note for note in report.notes if "in no step" in note]


def use(name: str, id_: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def result(id_: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


class Session:
    """Writes the lines of a session of Claude Code."""

    def __init__(self, name: str = "s1") -> None:
        self.name = name
        self.lines: list[dict[str, Any]] = []

    def add(self, uuid: str, parent: str | None, kind: str, **more: Any) -> None:
        line = {"uuid": uuid, "parentUuid": parent, "sessionId": self.name, "type": kind}
        self.lines.append({**line, "isSidechain": False, **more})

    def user(self, uuid: str, parent: str | None, content: Any, **more: Any) -> None:
        self.add(uuid, parent, "user", message=said("user", content), **more)

    def answer(self, uuid: str, parent: str | None, id_: str, *content: Any, **more: Any) -> None:
        message = {"id": id_, "role": "assistant", "model": "m", "content": list(content)}
        self.add(uuid, parent, "assistant", message=message, **more)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_the_lines_of_an_answer_are_a_step_and_parallel_results_are_seen_together(tmp_path: Path):
    s = Session()
    s.lines.append({"type": "summary", "summary": "Two files", "leafUuid": "z"})
    s.user("u1", None, "Fix it.")
    s.user("u2", "u1", "a caveat", isMeta=True)
    s.answer("a1", "u2", "m1", {"type": "thinking", "thinking": "Both.", "signature": "x"})
    s.answer("a2", "a1", "m1", use("Read", "t1", path="a"))
    s.answer("a3", "a2", "m1", use("Read", "t2", path="b"))
    s.user("r1", "a2", [result("t1", [text("A")])])  # a branch that is none
    s.user("r2", "a3", [result("t2", "B")], toolUseResult={"stdout": "a copy of it"})
    s.user("x1", None, "Look at b.", isSidechain=True)
    s.answer("x2", "x1", "mx", text("I looked, and it is much longer."), isSidechain=True)
    s.add("e1", "r2", "system", subtype="turn_duration", content="for the user only")
    s.answer("a4", "e1", "m2", text("Done."))
    s.answer("a4", "e1", "m2", text("Done."))
    s.answer("e2", "a4", "m3", text("API Error: 500"), isApiErrorMessage=True)
    report = imported(write_lines(tmp_path / "a.jsonl", *s.lines), tmp_path / "store")
    assert brief(tmp_path / "store", "trajectory_id", *STEP) == [
        ("s1", "Fix it.", 'Read({"path": "a"})\nRead({"path": "b"})', "Both."),
        ("s1", "A\n\nB", "Done.", None),
    ]
    assert report.left_out == {
        "event that the model did not see": 2,
        "message of a side-chain (a sub-agent)": 2,
        "copy of an earlier line": 1,
        "message that no model wrote": 1,
    }
    assert unread(report) == []


def test_what_the_user_took_back_is_no_step_and_a_compaction_goes_on(tmp_path: Path):
    s = Session()
    s.user("u1", None, "Fix it.")
    s.answer("a1", "u1", "m1", text("I cannot."))
    s.user("u2", "a1", "Why?")
    s.answer("a2", "u2", "m2", text("So."))
    s.user("u3", "a1", "Try.")
    s.answer("a3", "u3", "m3", text("I try."))
    s.add("c", None, "system", subtype="compact_boundary", logicalParentUuid="gone")
    s.user("u4", "c", "The story so far.", isCompactSummary=True)
    s.answer("a4", "u4", "m4", text("Done."))
    report = imported(write_lines(tmp_path / "a.jsonl", *s.lines), tmp_path / "store")
    assert brief(tmp_path / "store", *STEP[:2]) == [
        ("Fix it.", "I cannot."),
        ("Try.", "I try."),
        ("The story so far.", "Done."),
    ]
    assert report.left_out["message that the user took back"] == 2


def test_lines_that_name_no_parent_are_in_order(tmp_path: Path):
    s = Session()
    s.user("u1", None, "Fix it.")
    s.answer("a1", None, "m1", text("I try."))
    s.user("u2", None, "Again.")
    s.answer("a2", None, "m2", text("Done."))
    imported(write_lines(tmp_path / "a.jsonl", *s.lines), tmp_path / "store")
    steps = [("Fix it.", "I try."), ("Again.", "Done.")]
    assert brief(tmp_path / "store", *STEP[:2]) == steps


def test_sessions_of_one_task_are_a_group_wherever_they_ran(tmp_path: Path):
    for name in "ab":
        s = Session(name)
        s.user("u0", None, f"You are in /tmp/{name}.", isMeta=True)
        s.user("u1", "u0", "Fix it.")
        s.answer("a1", "u1", "m1", text("Done."))
        write_lines(tmp_path / "projects" / f"{name}.jsonl", *s.lines)
        sub = [{**line, "isSidechain": True, "agentId": "x"} for line in s.lines]
        write_lines(tmp_path / "projects" / name / "subagents" / "agent-x.jsonl", *sub)
    report = imported(tmp_path / "projects", tmp_path / "store")
    assert (report.num_trajectories, report.num_groups) == (2, 1)
    assert report.left_out == {"session of a sub-agent": 2}


@pytest.mark.parametrize("write", [write_lines, lambda path, *lines: write_json(path, lines)])
def test_claude_code_as_a_stream(tmp_path: Path, write: Any):
    def event(kind: str, message: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
        named = {"parent_tool_use_id": parent, "session_id": "s1"}
        return {"type": kind, "message": {"role": kind, **message}, **named}

    lines = [
        {"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/a b", "tools": ["Read"]},
        event("assistant", {"id": "m1", "content": [text("I read.")]}),
        event("assistant", {"id": "m1", "content": [use("Task", "t1", path="a")]}),
        event("assistant", {"id": "m9", "content": [text("an agent of its own")]}, "t1"),
        event("user", {"content": [result("t1", "A")]}),
        event("assistant", {"id": "m2", "content": [text("Done.")]}),
        {"type": "result", "subtype": "error_max_turns", "session_id": "s1", "result": "Done."},
    ]
    report = imported(write(tmp_path / "a.json", *lines), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action", "next_state") == [
        ("(nothing)", 'Task({"path": "a"})', "A"),
        ("A", "Done.", "[end: unknown]"),
    ]
    assert report.num_trajectories == 1
    assert unread(report) == []
    assert brief(tmp_path / "store", "truncated")[-1] == (False,)


def item(kind: str, **more: Any) -> dict[str, Any]:
    return {"timestamp": "t", "type": "response_item", "payload": {"type": kind, **more}}


CODEX = [
    {"type": "session_meta", "payload": {"id": "c1", "cwd": "/a b", "instructions": "Be brief."}},
    item("message", role="user", content=[{"type": "input_text", "text": "<environment_context>"}]),
    item("message", role="user", content=[{"type": "input_text", "text": "Fix it."}]),
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Fix it."}},
    item("reasoning", summary=[{"type": "summary_text", "text": "Look."}], encrypted_content="x y"),
    item("function_call", name="shell", call_id="k1", arguments='{"command": ["ls"]}'),
    item("function_call_output", call_id="k1", output="a.py"),
    {"type": "compacted", "payload": {"message": "It listed.", "replacement_history": []}},
    item("ghost_snapshot", ghost_commit="an id"),
    item("message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
]


def test_codex_rollouts(tmp_path: Path):
    other = {"type": "session_meta", "payload": {"id": "c2", "source": {"subagent": "review"}}}
    parent = {"type": "session_meta", "payload": {"id": "c0"}}
    begin, *rest = CODEX
    log = write_lines(tmp_path / "a.jsonl", begin, parent, *rest, other, *rest)
    report = imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "trajectory_id", *STEP) == [
        ("c1", "Fix it.", 'shell({"command": ["ls"]})', "Look."),
        ("c1", "a.py\n\nIt listed.", "Done.", None),
    ]
    assert report.left_out == {"session of a sub-agent": 1, "event that the model did not see": 2}
    assert unread(report) == []


def test_every_kind_of_call_of_codex_is_a_step_with_its_result(tmp_path: Path):
    items = [
        item("local_shell_call", call_id="k2", action={"type": "exec", "command": ["ls"]}),
        item("function_call_output", call_id="k2", output="a.py"),
        item("custom_tool_call", call_id="k3", name="apply_patch", input="*** Begin Patch"),
        item("custom_tool_call_output", call_id="k3", output="Success."),
        item("tool_search_call", call_id="k4", execution="client", arguments={"query": "web"}),
        item("tool_search_output", call_id="k4", status="completed", tools=[{"name": "browse"}]),
        item("web_search_call", status="completed", action={"type": "search", "query": "q"}),
        {"type": "turn_context", "payload": {"cwd": "/a b", "model": "m"}},
        item("message", role="user", content=[{"type": "input_text", "text": "Draw it."}]),
        item("image_generation_call", status="completed", revised_prompt="A cat.", result="AA=="),
    ]
    report = imported(write_lines(tmp_path / "a.jsonl", *CODEX, *items), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action")[2:] == [
        ("a.py", "apply_patch(*** Begin Patch)"),
        ("Success.", 'tool_search({"query": "web"})'),
        ('[{"name": "browse"}]', 'web_search({"query": "q", "type": "search"})'),
        ("Draw it.", 'image_generation({"prompt": "A cat."})'),
    ]
    assert unread(report) == []


def test_what_the_user_of_codex_took_back_is_no_step(tmp_path: Path):
    wrong = [
        item("message", role="user", content="Delete it."),
        item("message", role="assistant", content="Deleted."),
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    ]
    log = write_lines(tmp_path / "a.jsonl", *CODEX[:-1], *wrong, CODEX[-1])
    report = imported(log, tmp_path / "store")
    assert [action for _, action in brief(tmp_path / "store", "state", "action")] == [
        'shell({"command": ["ls"]})',
        "Done.",
    ]
    assert report.left_out["message that the user took back"] == 2


@pytest.mark.parametrize("number", [0, -1, 1.5, "x", True, [1], 10**9])
def test_a_number_of_turns_that_is_none_takes_back_nothing_or_all(number: Any, tmp_path: Path):
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": number}}
    report = imported(write_lines(tmp_path / "a.jsonl", *CODEX, back), tmp_path / "store")
    assert report.num_trajectories == (0 if number == 10**9 else 1)
    assert not report.bad_rows


def test_a_row_around_a_session_has_its_task_and_verdict(tmp_path: Path):
    s = Session()
    s.user("u1", None, "Fix it.")
    s.answer("a1", "u1", "m1", text("Done."))
    s.user("x", None, "Look.", isSidechain=True)
    named = {"task_id": "t", "reward": 1.0}
    rows = [{**named, "transcript": s.lines}, {**named, "reward": 0, "events": CODEX}]
    write_lines(tmp_path / "logs" / "a.jsonl", rows[0])
    write_lines(tmp_path / "logs" / "b.jsonl", rows[1])
    report = imported(tmp_path / "logs", tmp_path / "store")
    assert report.num_files == {"claude-code": 1, "codex": 1}
    assert (report.num_groups, report.num_success, report.num_failed) == (1, 1, 1)
    assert brief(tmp_path / "store", "task_id", "action")[-1] == ("t", "Done.")
    assert unread(report) == []


def test_older_rollouts_and_executions_of_codex_have_the_same_steps(tmp_path: Path):
    older = [
        {"id": "c1", "timestamp": "t", "instructions": None},
        *[line["payload"] for line in CODEX[2:] if line["type"] == "response_item"],
        {"record_type": "state"},
    ]
    items = [
        {"type": "reasoning", "text": "Look."},
        {"type": "command_execution", "command": "ls", "aggregated_output": "a.py", "exit_code": 0},
        {"type": "agent_message", "text": "Done."},
    ]
    events = [{"type": "item.completed", "item": {"id": "i", **each}} for each in items]
    write_lines(tmp_path / "logs" / "older.jsonl", *older)
    write_lines(
        tmp_path / "logs" / "exec.jsonl", {"type": "thread.started", "thread_id": "c2"}, *events
    )
    report = imported(tmp_path / "logs", tmp_path / "store")
    assert brief(tmp_path / "store", *STEP) == [
        ("Fix it.", 'shell({"command": ["ls"]})', "Look."),
        ("a.py", "Done.", None),
        ("(nothing)", 'command_execution({"command": "ls"})', "Look."),
        ("a.py", "Done.", None),
    ]
    assert unread(report) == []


def gemini(*more: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    answer = {"output": "a.py"}
    result = [{"functionResponse": {"id": "c", "name": "ls", "response": answer}}]
    call = {"id": "c", "name": "ls", "args": {"dir": "."}, "result": result, "status": "success"}
    return [
        {"id": "1", "type": "user", "content": [{"text": "Fix it."}], **fields},
        {
            "id": "2",
            "type": "gemini",
            "content": "",
            "model": "m",
            "toolCalls": [call],
            "thoughts": [{"subject": "Look", "description": "around first", "timestamp": "t"}],
        },
        {"id": "3", "type": "info", "content": "for the user only"},
        *more,
        {"id": "9", "type": "gemini", "content": "Done.", "thoughts": []},
    ]


def gemini_object(path: Path) -> Path:
    return write_json(path, {**GEMINI, "messages": gemini()})


def gemini_lines(path: Path) -> Path:
    first, *rest = gemini({"id": "4", "type": "gemini", "content": "no"}, {"$rewindTo": "4"})
    early = {**rest[0], "toolCalls": []}
    return write_lines(path, GEMINI, first, early, {"$set": {"summary": "a b"}}, *rest)


GEMINI = {"sessionId": "g1", "projectHash": "p", "startTime": "t", "lastUpdated": "t"}


@pytest.mark.parametrize("write", [gemini_object, gemini_lines])
def test_sessions_of_gemini_cli(tmp_path: Path, write: Any):
    report = imported(write(tmp_path / "session.json"), tmp_path / "store")
    assert brief(tmp_path / "store", "trajectory_id", *STEP) == [
        ("g1", "Fix it.", 'ls({"dir": "."})', "Look\naround first"),
        ("g1", "a.py", "Done.", None),
    ]
    assert report.left_out == {"event that the model did not see": 1}
    assert unread(report) == []


def test_a_message_a_line_is_a_conversation_by_its_session(tmp_path: Path):
    def line(session: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"session_id": session, "task_id": "t", "role": role, "content": content, **more}

    lines = [
        line("a", "user", "hall"),
        line("b", "user", "hall"),
        line("a", "assistant", [use("go", "1", to="kitchen")]),
        line("b", "assistant", "stay", reward=0),
        line("a", "tool", "kitchen"),
        line("a", "assistant", "out", reward=1),
    ]
    report = imported(write_lines(tmp_path / "a.jsonl", *lines), tmp_path / "store")
    assert (report.num_trajectories, report.num_groups, report.num_success) == (2, 1, 1)
    assert brief(tmp_path / "store", "state", "action", "next_state") == [
        ("hall", 'go({"to": "kitchen"})', "kitchen"),
        ("kitchen", "out", "[end: success]"),
        ("hall", "stay", "[end: failure]"),
    ]
    assert unread(report) == []


def test_streams_of_gemini_cli_and_of_cursor(tmp_path: Path):
    gemini = [
        {"type": "init", "session_id": "g", "model": "m"},
        {"type": "message", **said("user", "List them.")},
        {"type": "message", **said("assistant", "I ", delta=True)},
        {"type": "message", **said("assistant", "look.", delta=True)},
        {"type": "tool_use", "tool_name": "ls", "tool_id": "1", "parameters": {"dir": "."}},
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": "a.py"},
        {"type": "tool_use", "tool_name": "cat", "tool_id": "2", "parameters": {}},
        {"type": "tool_result", "tool_id": "2", "status": "success"},
        {"type": "message", **said("assistant", "One.", delta=True)},
    ]

    def cursor(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "session_id": "c", **more}

    call = {"args": {"dir": "."}, "result": {"success": {"content": "a.py"}}}
    shown = {key: value for key, value in call.items() if key == "args"}
    stream = [
        cursor("system", subtype="init", model="m"),
        cursor("user", message=said("user", "List them.")),
        cursor("assistant", message=said("assistant", "I look.")),
        cursor("tool_call", subtype="started", call_id="1", tool_call={"lsToolCall": shown}),
        cursor("tool_call", subtype="completed", call_id="1", tool_call={"lsToolCall": call}),
        cursor("assistant", message=said("assistant", "One.")),
    ]
    for name, lines in (("a", gemini), ("b", stream)):
        write_lines(tmp_path / "logs" / f"{name}.jsonl", *lines)
    report = imported(tmp_path / "logs", tmp_path / "store")
    assert report.num_files == {"message-lines": 2}
    found = brief(tmp_path / "store", *STEP)
    assert [step[1:] for step in found if step[0] == "List them."] == [
        ('ls({"dir": "."})', "I look.")
    ] * 2
    assert ("a.py", "cat({})", None) in found
    assert sorted(step[0] for step in found if step[1] == "One.") == [
        "success",  # all that the log has of what it printed
        '{"success": {"content": "a.py"}}',
    ]


def test_messages_may_stand_in_lines_of_other_kinds(tmp_path: Path):
    lines = [
        {"type": "session", "id": "p1"},
        {"role": "user", "message": {"content": [text("List them.")]}},
        {
            "type": "message",
            "id": "m",
            "message": {"role": "assistant", "content": [use("ls", "1", dir=".")]},
        },
        {"type": "message", "id": "n", "message": said("toolResult", "a.py", toolCallId="1")},
        {"type": "note", "remark": "a text that nobody reads"},
        {"role": "assistant", "content": "One file."},
    ]
    report = imported(write_lines(tmp_path / "a.jsonl", *lines), tmp_path / "store")
    assert brief(tmp_path / "store", *STEP[:2]) == [
        ("List them.", 'ls({"dir": "."})'),
        ("a.py", "One file."),
    ]
    assert ["remark" in note for note in unread(report)] == [True]


@pytest.mark.parametrize(
    ("output", "state"),
    [
        (
            '{"output":"a.py","metadata":{"exit_code":0,"duration_seconds":0.2}}',
            '{"metadata": {"exit_code": 0}, "output": "a.py"}',
        ),
        (
            "Exit code: 0\nWall time: 0.2 seconds\nOutput:\nWall time: 1 day\n",
            "Exit code: 0\nOutput:\nWall time: 1 day\n",
        ),
        ('{"output":"a.py","other":0.2}', '{"output":"a.py","other":0.2}'),
        (
            [
                {"type": "input_text", "text": f"Script completed\n{clock}\nOutput:\n"}
                for clock in ("Wall time 0.2 seconds", "Wall time 1 day")
            ],
            "Script completed\nOutput:\n\nScript completed\nWall time 1 day\nOutput:\n",
        ),
        ([], "[]"),
    ],
)
def test_the_time_of_a_command_is_no_part_of_a_state(output: Any, state: str, tmp_path: Path):
    lines = [
        {"type": "session_meta", "payload": {"id": "c1"}},
        item("message", role="user", content="Fix it."),
        item("function_call", name="shell", arguments="{}", call_id="1"),
        item("function_call_output", call_id="1", output=output),
        item("message", role="assistant", content="Done."),
    ]
    report = imported(write_lines(tmp_path / "a.jsonl", *lines), tmp_path / "store")
    assert brief(tmp_path / "store", "state")[-1] == (state,)
    assert unread(report) == []
