"""Rows whose answers, turns and rollouts are not in one list of messages."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.collector.importers.logs import called, said, write_json, write_lines
from tests.collector.importers.read_back import brief, imported

HALL = [said("user", "hall")]
WALK = [*HALL, said("assistant", "go"), said("user", "kitchen")]
CALL, OPEN = called("open", door="red"), 'open({"door": "red"})'

Steps = list[tuple[str, str, str | None]]


def completion(message: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as OpenAI's server gives it."""
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message}]}


GONE: Steps = [("hall", "go", None), ("kitchen", "out", None)]


@pytest.mark.parametrize(
    ("row", "steps"),
    [
        ({"messages": WALK, "response": "out"}, GONE),
        ({"messages": WALK, "completion": [said("assistant", "out")]}, GONE),
        ({"messages": WALK, "completions": ["out"]}, GONE),
        ({"messages": WALK, "choices": [{"text": "out"}]}, GONE),
        ({"messages": WALK, "output": completion(said("assistant", "out"))}, GONE),
        ({"messages": WALK, "answer": "what is right"}, GONE[:1]),
        ({"messages": HALL, "answer": "out"}, [("hall", "out", None)]),
        (
            {"messages": HALL, "response": completion(CALL)},
            [("hall", 'open({"door": "red"})', None)],
        ),
        (  # the last answer once more, as it was sampled
            {"messages": [*WALK, said("assistant", "out")], "response": "<think>hm</think>out"},
            [*GONE[:1], ("kitchen", "out", "hm")],
        ),
        ({"messages": [*WALK, said("assistant", "out")], "output": "parsed"}, GONE),
        ({"request": {"messages": WALK}, "response": {"content": [{"text": "out"}]}}, GONE),
        ({"prompt": "hall", "response": completion(said("assistant", "go"))}, GONE[:1]),
        ({"turns": [{"user": "hall", "assistant": "go"}, {"user": "kitchen", "bot": "out"}]}, GONE),
        ({"history": [["hall", "go"], ["kitchen", "out"]]}, GONE),
        ({"history": [["hall", "go"]], "prompt": "kitchen", "response": "out"}, GONE),
        ({"messages": HALL, "trajectory": WALK, "response": "out"}, GONE),
        ({"messages": [["human", "hall"], ["ai", "go"]]}, GONE[:1]),
        (  # LLaMA-Factory's parts
            {
                "messages": [
                    {"role": role, "content": [{"type": "text", "value": text}]}
                    for role, text in (("user", "hall"), ("assistant", "go"))
                ]
            },
            GONE[:1],
        ),
        ({"my_chat": WALK}, GONE[:1]),
        ({"values": {"messages": WALK}}, GONE[:1]),
        (  # Agent-R1, with prompts that have what was before
            {
                "input": "hall",
                "output": "out",
                "step": 1,
                "score": 1.0,
                "steps": [
                    {"input": "hall", "output": "go"},
                    {"input": "hallgokitchen", "output": "out"},
                ],
            },
            GONE,
        ),
        (  # Alpaca
            {"instruction": "Add.", "input": "1 and 1", "output": "2"},
            [("Add.\n\n1 and 1", "2", None)],
        ),
        (
            {"instruction": "Add 1 and 1.", "input": "", "output": "2"},
            [("Add 1 and 1.", "2", None)],
        ),
    ],
)
def test_steps_of_a_row(row: dict[str, Any], steps: Steps, tmp_path: Path):
    report = imported(
        write_lines(tmp_path / "w.jsonl", {"reward": 1.0, **row}), tmp_path / "s", max_unread=100
    )
    assert report.bad_rows == []
    assert brief(tmp_path / "s", "state", "action", "thought") == steps


PAIR = {("hall", "go", 1.0), ("hall", "stay", 0.0)}


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "hall", "completions": ["go", "stay"], "rewards": [1.0, 0.0]},
        {"prompt": ["hall"] * 2, "completion": ["go", "stay"], "Exact": [1, 0]}
        | {"step": ["1", "1"], "advantages": [1.0, -1.0]},  # ms-swift
        {"messages": [[*HALL, said("assistant", "go")], [*HALL, said("assistant", "stay")]]}
        | {"tokens": [[1, 2], [1, 3]], "scores": [1.0, 0.0], "group_overrides": None},  # Atropos
        {"messages": HALL, "scores": [1.0, 0.0]}
        | {"choices": [{"message": said("assistant", text)} for text in ("go", "stay")]},
    ],
)
def test_a_row_of_columns_is_several_rollouts_of_a_group(row: dict[str, Any], tmp_path: Path):
    report = imported(write_lines(tmp_path / "w.jsonl", row), tmp_path / "s")
    assert (report.num_groups, report.bad_rows) == (1, [])
    assert set(brief(tmp_path / "s", "state", "action", "reward")) == PAIR


def test_a_table_of_wandb(tmp_path: Path):
    cells = [[json.dumps([*HALL, said("assistant", "go")]), 1.0], ["[]", 0.0]]
    table = {"columns": ["messages", "reward"], "data": cells}
    report = imported(write_json(tmp_path / "rollouts.table.json", table), tmp_path / "s")
    assert report.left_out == {"row without messages": 1}
    assert brief(tmp_path / "s", "state", "action", "reward") == [("hall", "go", 1.0)]


@pytest.mark.parametrize(
    ("agreed", "num_groups"),
    [("OK", 2), ("Understood. I will follow the rules.", 2), ("go north", 1)],
)
def test_an_opening_that_agrees_is_context(agreed: str, num_groups: int, tmp_path: Path):
    """Else all tasks behind it would be one group."""
    rules = [said("user", "Rules."), said("assistant", agreed)]
    rows = [
        {"messages": [*rules, said("user", task), said("assistant", act)], "reward": 1.0}
        for task in ("kitchen", "ring")
        for act in ("a", "b")
    ]
    report = imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "s")
    assert report.num_groups == num_groups
    assert report.num_steps == 4 * (3 - num_groups)
    roles = {"user": "user", "assistant": "agent"}
    for number, row in enumerate(rows):
        steps = [{"source": roles[m["role"]], "message": m["content"]} for m in row["messages"]]
        atif = {"schema_version": "ATIF-v1.4", "agent": {"name": "a"}, "steps": steps}
        write_json(tmp_path / f"atif/{number}/trajectory.json", atif)
    assert imported(tmp_path / "atif", tmp_path / "t").num_steps == report.num_steps


@pytest.mark.parametrize("ids", [("m1", "m1", "m2"), ("agent", "agent", "agent")])
def test_one_id_is_one_answer_unless_it_names_the_speaker(ids: tuple[str, ...], tmp_path: Path):
    """Coding agents log each call of an answer with its result behind it."""

    def use(number: int) -> list[Any]:
        call = {"type": "tool_use", "id": str(number), "name": "read", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": str(number), "content": f"text {number}"}
        answer = {"role": "assistant", "id": ids[number], "content": [call]}
        return [answer, {"role": "user", "content": [result]}]

    done = said("assistant", "done", id=ids[2])
    row = {"messages": [*HALL, *use(0), *use(1), done], "reward": 1.0}
    imported(write_lines(tmp_path / "w.jsonl", row), tmp_path / "s")
    apart = [("hall", 'read({"n": 0})'), ("text 0", 'read({"n": 1})'), ("text 1", "done")]
    one = [("hall", 'read({"n": 0})\nread({"n": 1})'), ("text 0\n\ntext 1", "done")]
    assert brief(tmp_path / "s", "state", "action") == (one if ids[0] == "m1" else apart)


def test_ids_are_no_part_of_a_mark(tmp_path: Path):
    def shown(number: str) -> dict[str, Any]:
        part = {"type": "hologram", "id": number, "depth": [1, 2]}
        return {"messages": [said("user", [part]), said("assistant", "a")], "reward": 1.0}  # type: ignore[arg-type]

    report = imported(write_lines(tmp_path / "w.jsonl", shown("1"), shown("2")), tmp_path / "s")
    assert len(set(brief(tmp_path / "s", "state"))) == 1
    assert list(report.left_out.values()) == [2]
