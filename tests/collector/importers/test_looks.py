"""Files that are no logs are described; logs in little-known wrappings are read."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.errors import InputError
from tests.collector.importers.logs import called, said, write_json, write_lines
from tests.collector.importers.read_back import brief, imported

ASKED = said("user", "where?")
LOOKED = {**called("look", at=1), "content": "hm"}
SAW = {"role": "tool", "tool_call_id": "1", "content": "a hall"}
LEFT = said("assistant", "left")
STEPS = [("where?", 'look({"at": 1})'), ("a hall", "left")]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            {"id": 1, "response": {"choices": []}, "output": "a"},
            r"id \(number\).*lacks what the mo",
        ),
        (
            {"question": "q", "thoughts": ["a"]},
            r"thoughts \(list of text\).* lacks an answer \(com",
        ),
        (  # nothing that is tried has an outcome
            {"w": {"x": [{"messages": [ASKED, LOOKED, SAW, LEFT]}]}},
            r"w \(object\)\. It has no messages",
        ),
        ({"w": {"properties": {"state": {"type": "x"}, "action": {}}}, "reward": 1}, "no messages"),
        ({"trajectory": [["go east", "a hall"]]}, r"its first item is \['go east', 'a hall'\]"),
        (
            {"task": "t", "days": [{"n": 1, "act": "go"}], "tags": ["a"]},
            r"`days` must .* items have n, act\. As steps they lack the state, "
            r"which --columns steps=days,state=FIELD names",
        ),
        (
            {"success": True, "steps": [{"input": "hall"}]},
            r"they lack the state and the action, which --columns state=FIELD,action=FIELD",
        ),
        (
            {"action": "go", "price": None},
            r"price \(null\)\. It may be a step, and lacks its state",
        ),
        ({"loss": 0.5, "epoch": 1}, r"loss \(number\).*Numbers alone"),
        ({"name": "x", "flags": []}, r"flags \(empty list\)\. It has no messages, no prompt"),
    ],
)
def test_a_file_that_is_no_log_is_described(row: dict[str, Any], sentence: str, tmp_path: Path):
    path = write_lines(tmp_path / "x.jsonl", row)
    with pytest.raises(InputError, match=rf"log of a known format: the first record .*{sentence}"):
        imported(path, tmp_path / "store")
    with pytest.raises(InputError, match=rf"none of its 1 files is one. In {path} the first.*"):
        imported(tmp_path, tmp_path / "store")


def test_the_command_that_takes_a_log_out_was_tried(tmp_path: Path):
    chat = [ASKED, LOOKED, SAW, LEFT]
    inner = {"n": 1, "x": {"b-c": [{"messages": chat}]}}
    rows = [{"a": inner, "task": "t", "reward": reward} for reward in (0, 1)]
    path = write_lines(tmp_path / "x.jsonl", *rows)
    with pytest.raises(InputError) as refused:
        imported(path, tmp_path / "store")
    found = re.search(r"`jq -c '(.*)' FILE > records\.jsonl` takes it out", str(refused.value))
    assert found is not None
    assert found[1] == 'del(.a) + (.a.x."b-c"[])'
    made = [{"messages": chat, "task": "t", "reward": reward} for reward in (0, 1)]
    report = imported(write_lines(tmp_path / "made.jsonl", *made), tmp_path / "store")
    assert (report.num_steps, report.num_groups, report.num_success) == (4, 1, 1)


def test_a_list_called_path_is_no_part_of_a_path(tmp_path: Path):
    steps = [{"view": "hall", "move": "east"}, {"view": "exit", "move": "go"}]
    log = write_lines(tmp_path / "x.jsonl", {"path": steps, "task": "t", "reward": 1})
    imported(log, tmp_path / "store", columns="steps=path,state=view,action=move")
    assert brief(tmp_path / "store", "state", "action") == [("hall", "east"), ("exit", "go")]


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ({"metrics": {"judge_score": 1}}, {"reward": "judge_score"}),
        ({"info": {"is_result_ok": True}}, {"success": "info.is_result_ok"}),
    ],
)
def test_an_option_that_would_give_verdicts_gives_them(
    more: dict[str, Any], option: dict[str, str], tmp_path: Path
):
    other = json.loads(json.dumps(more).replace("1", "0").replace("true", "false"))
    chat = [ASKED, LOOKED, SAW, LEFT]
    rows = [{"task": "t", "messages": chat, **each} for each in (more, other)]
    log = write_lines(tmp_path / "x.jsonl", *rows)
    [note] = [n for n in imported(log, tmp_path / "none").notes if "without a verdict" in n]
    ((name, value),) = option.items()
    assert note.endswith(f". --{name} {value} takes one that all of them have")
    report = imported(log, tmp_path / "store", **option)
    assert (report.num_success, report.num_failed) == (1, 1)
    # One that is the same in all records, or is not in all, gives nothing to compare.
    same = write_lines(tmp_path / "y.jsonl", rows[0], rows[0])
    lacks = write_lines(tmp_path / "z.jsonl", *rows, {"task": "t", "messages": chat})
    for log in (same, lacks):
        [note] = [n for n in imported(log, tmp_path / log.stem).notes if "without a verdict" in n]
        assert "takes one" not in note


def test_a_folder_without_files_says_which_it_looks_for(tmp_path: Path):
    with pytest.raises(InputError, match=r"it has no file that ends in \.jsonl, "):
        imported(tmp_path, tmp_path / "store")


def _calls(wrap: Any) -> list[dict[str, Any]]:
    """Return a log of two calls of one conversation."""
    return [wrap([ASKED], LOOKED), wrap([ASKED, LOOKED, SAW], LEFT)]


def _invocation(given: list[Any], answer: object) -> dict[str, Any]:
    return {
        "input": {"inputContentType": "application/json", "inputBodyJson": {"messages": given}},
        "output": {"outputBodyJson": {"output": {"message": answer}}},
    }


def _spent(given: list[Any], answer: object) -> dict[str, Any]:
    response = {
        "object": "chat.completion",
        "choices": [{"message": answer}],
        "usage": {"n": "x y"},
    }
    row = {"session_id": "s", "call_type": "completion", "messages": json.dumps(given)}
    return {**row, "response": json.dumps(response)}


def _state(given: list[Any], answer: object) -> dict[str, Any]:
    return {"thread_id": "t", "values": {"messages": [*given, answer]}, "metadata": {"step": 1}}


@pytest.mark.parametrize("wrap", [_invocation, _spent, _state])
def test_rows_of_a_conversation_that_grows_in_an_object_or_a_text(wrap: Any, tmp_path: Path):
    imported(write_lines(tmp_path / "x.jsonl", *_calls(wrap)), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == STEPS


def test_lists_that_pandas_wrote_as_python_are_read(tmp_path: Path):
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task_id", "messages"])
        writer.writerow(["t", repr([ASKED, LOOKED, {**SAW, "name": None}, LEFT])])
    imported(path, tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == STEPS


def test_the_text_of_a_python_object_is_no_answer(tmp_path: Path):
    asked = said("user", "where am I, and where do I go from here?")
    row = {
        "messages": [asked],
        "response": "ModelResponse(id='1', choices=[])",
        "outputs": ["left"],
    }
    report = imported(write_lines(tmp_path / "x.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", "action") == [("left",)]
    assert any("`response`: 1 of 1 records" in note for note in report.notes)


def test_steps_that_an_observation_opens_are_not_those_of_swe_agent(tmp_path: Path):
    steps = [{"observation": "hall", "action": "east"}, {"observation": "exit", "action": "go"}]
    row = {"task_id": "t", "success": True, "trajectory": steps}
    report = imported(write_json(tmp_path / "x.json", row), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == [("hall", "east"), ("exit", "go")]
    assert report.num_success == 1


CALLS = [
    {"tool": "look", "args": {"at": 1}, "result": "a hall", "net": 1},
    {"tool": "leave", "args": {}, "result": "the garden", "net": 2},
]


def test_the_result_of_a_tool_is_what_its_call_led_to(tmp_path: Path):
    row = {"question": "where?", "success": True, "trace": CALLS}
    report = imported(write_lines(tmp_path / "x.jsonl", row), tmp_path / "store")
    steps = [("where?", 'look({"at": 1})', "a hall"), ("a hall", "leave({})", "the garden")]
    assert brief(tmp_path / "store", "state", "action", "next_state") == steps
    assert any("taken for what its action led to" in note for note in report.notes)


@pytest.mark.parametrize("name", ["history", "steps"])
def test_steps_with_an_action_and_a_text_are_not_events_of_openhands(name: str, tmp_path: Path):
    steps = [
        {"room": "hall", "action": "look", "thought": "hm", "path": "a", "success": True},
        {"room": "door", "action": "leave", "content": "a note", "success": True},
    ]
    log = write_lines(tmp_path / "x.jsonl", {"id": 1, name: steps})
    with pytest.raises(InputError, match="As steps they lack the state"):
        imported(log, tmp_path / "none")
    report = imported(log, tmp_path / "store", columns="state=room")
    assert report.num_files == {"steps": 1}
    assert brief(tmp_path / "store", "state", "action") == [("hall", "look"), ("door", "leave")]
    assert any("each step says whether it succeeded" in note for note in report.notes)


def test_thoughts_of_autogen_are_thoughts(tmp_path: Path):
    call = {"id": "1", "name": "look", "arguments": '{"at": 1}'}
    result = {"call_id": "1", "name": "look", "content": "a hall", "is_error": False}
    messages = [
        {"source": "user", "type": "TextMessage", "content": "where?"},
        {"source": "helper", "type": "ThoughtEvent", "content": "hm"},
        {"source": "helper", "type": "ToolCallRequestEvent", "content": [call]},
        {"source": "helper", "type": "ToolCallExecutionEvent", "content": [result]},
        {"source": "helper", "type": "TextMessage", "content": "left"},
    ]
    imported(write_lines(tmp_path / "x.jsonl", {"messages": messages}), tmp_path / "store")
    steps = [(*STEPS[0], "hm"), (*STEPS[1], None)]
    assert brief(tmp_path / "store", "state", "action", "thought") == steps


def test_a_trace_has_the_verdict_of_the_object_around_its_spans(tmp_path: Path):
    def span(number: int, given: list[Any], answer: object) -> dict[str, Any]:
        said = {"mlflow.spanInputs": json.dumps({"messages": given})}
        said |= {"mlflow.spanOutputs": json.dumps({"choices": [{"message": answer}]})}
        times = {"start_time_unix_nano": number}
        return {
            "trace_id": "inner",
            "span_id": str(number),
            "name": "c",
            "attributes": said,
            **times,
        }

    rated = [{"assessment_name": "correctness", "feedback": {"value": True}}]
    spans = [span(1, [ASKED], LOOKED), span(2, [ASKED, LOOKED, SAW], LEFT)]
    row = {"info": {"trace_id": "tr-1", "assessments": rated}, "data": {"spans": spans}}
    report = imported(write_lines(tmp_path / "x.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == STEPS
    assert (report.num_success, report.left_out) == (1, {})


def test_a_refusal_is_an_answer(tmp_path: Path):
    refused = {"role": "assistant", "content": None, "refusal": "I will not."}
    row = {"messages": [ASKED, LOOKED, SAW, refused]}
    imported(write_lines(tmp_path / "x.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == [STEPS[0], ("a hall", "I will not.")]


def test_trajectories_without_a_prompt_are_told_to_be_one_group(tmp_path: Path):
    rows = [{"messages": [LOOKED, SAW, said("assistant", answer)]} for answer in ("left", "right")]
    report = imported(write_lines(tmp_path / "x.jsonl", *rows), tmp_path / "store")
    assert any("2 rollouts begin without a prompt" in note for note in report.notes)


def test_scores_of_an_evaluation_of_weave_judge_its_trace(tmp_path: Path):
    scored = {"output": "left", "scores": {"exact": {"correct": True}}}
    of_trace = {"trace_id": "t", "inputs": {}}
    rows = [
        {"id": "1", "op_name": "predict_and_score", **of_trace, "output": scored},
        {"id": "2", "op_name": "chat", "parent_id": "1", "trace_id": "t", "output": LEFT}
        | {"inputs": {"messages": [ASKED, LOOKED, SAW]}},
    ]
    report = imported(write_lines(tmp_path / "x.jsonl", *rows), tmp_path / "store")
    assert brief(tmp_path / "store", "action") == [('look({"at": 1})',), ("left",)]
    assert report.num_success == 1
