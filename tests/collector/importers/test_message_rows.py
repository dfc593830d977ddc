"""Rows of messages in the dialects of data sets and of model servers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.formats.row_columns import rows_in
from tests.collector.importers.logs import called, gym_row, said, write_lines
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.collector.importers.rows import ROWS

SEEN = ("state", "action", "thought")


def row(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), "reward": 1.0, **more}


@pytest.mark.parametrize(
    ("messages", "steps"),
    [
        (  # items of the Responses API that have no result
            [
                {"type": "message", "role": "user", "content": "q"},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "web_search_call", "action": {"query": "x"}},
            ],
            [("q", 'web_search({"query": "x"})', "hm")],
        ),
        (  # a chunk of LangChain has the calls of OpenAI beside none of its own
            [
                {"type": "human", "data": {"content": "q", "type": "human"}},
                {
                    "type": "AIMessageChunk",
                    "data": {
                        "content": "",
                        "additional_kwargs": {"tool_calls": [called("go")["tool_calls"][0]]},
                        "tool_calls": [],
                    },
                },
            ],
            [("q", "go({})", None)],
        ),
        (  # LLaMA-Factory: a call is a message, which may be broken
            [
                {"from": "human", "value": "q"},
                {"from": "function_call", "value": "no JSON"},
                {"from": "gpt", "value": "done"},
            ],
            [("q", "no JSON", None), ("q", "done", None)],
        ),
        (  # a tool of OpenAI whose input is no JSON
            [
                said("user", "q"),
                said("assistant", None, tool_calls=[{"custom": {"name": "sh", "input": "ls {"}}]),
            ],
            [("q", "sh(ls {)", None)],
        ),
        (  # calls as JSON text, from Parquet
            [
                said("user", "q"),
                said("assistant", "", tool_calls='[{"name": "look", "arguments": "{}"}]'),
            ],
            [("q", "look({})", None)],
        ),
        (  # Qwen's coder has tags within the tags of a call; the last one may be open
            [
                said("user", "q"),
                said(
                    "assistant",
                    "hm<tool_call>\n<function=look>\n<parameter=at>\n1\n</parameter>\n"
                    "</function>\n</tool_call>",
                ),
                said("user", "<tool_response>\na hall\n</tool_response>"),
                said("assistant", '<tool_call>{"name": "go", "arguments": {"to": "x"}}'),
                said("user", "<tool_response>\nnow\n</tool_response>"),
                said(
                    "assistant", "hm<function=look>\n<parameter=at>\n1\n</parameter>\n</function>"
                ),
            ],
            [
                ("q", 'look({"at": "1"})', "hm"),
                ("a hall", 'go({"to": "x"})', None),
                ("now", 'look({"at": "1"})', "hm"),
            ],
        ),
        (  # no call: the text stays
            [said("user", "q"), said("assistant", "<tool_call>look</tool_call>")],
            [("q", "<tool_call>look</tool_call>", None)],
        ),
        (  # a thread of OpenAI's Assistants has the newest message first
            [
                {**said(role, text), "created_at": time}
                for time, role, text in [
                    (9, "assistant", "b"),
                    (7, "user", "r"),
                    (7, "assistant", "a"),
                    (3, "user", "q"),
                ]
            ],
            [("q", "a", None), ("r", "b", None)],
        ),
    ],
)
def test_what_dialects_have_beside_the_usual(
    tmp_path: Path, messages: list[dict[str, Any]], steps: list[tuple[Any, ...]]
):
    report = imported(write_lines(tmp_path / "w.jsonl", row(*messages)), tmp_path / "store")
    assert report.bad_rows == []
    assert brief(tmp_path / "store", *SEEN) == steps


def test_fields_of_a_row_of_several_rollouts_stay_in_their_order():
    row = {name: [name, name] for name in ("completions", *"hgfedcba")}
    first, second = rows_in({"prompt": "q", **row})
    assert first == second
    assert list(first) == ["prompt", "completion", *"hgfedcba"]


def test_answers_that_training_leaves_out_are_context(tmp_path: Path):
    """AgentGym begins with an answer that the model did not give."""
    conversation = [
        {"from": "human", "loss": None, "value": "You walk."},
        {"from": "gpt", "loss": False, "value": "OK."},
        {"from": "human", "loss": None, "value": "hall"},
        {"from": "gpt", "loss": True, "value": "Action: go"},
    ]
    log = write_lines(tmp_path / "g.jsonl", {"item_id": "a_0", "conversations": conversation})
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "task_id", "state", "action") == [
        ("a_0", "You walk.\n\nOK.\n\nhall", "Action: go")
    ]


def test_lists_as_json_text_and_verdicts_as_numbers(tmp_path: Path):
    """SWE-smith has the messages as text; other data sets have 0 and 1, or `target`."""
    messages = [said("user", "fix"), said("assistant", "ok")]
    log = write_lines(
        tmp_path / "s.jsonl",
        {"messages": json.dumps(messages), "instance_id": "a", "resolved": True},
        {"trajectory": messages, "instance_id": "a", "resolved": 0},
        {"trajectory": messages, "instance_id": "a", "target": False},
        {"trajectory": messages, "instance_id": "a", "target": 1},
    )
    report = imported(log, tmp_path / "store")
    assert (report.num_success, report.num_failed, report.num_unjudged) == (1, 2, 1)


@pytest.mark.parametrize(
    "judged",
    [
        {"scores": {"correct": True}},
        {"scores": {"correctness": 1.0, "length": 40}},
        {"feedback": [{"key": "correctness", "score": 1}, {"key": "tone", "score": 0.2}]},
        {"feedback": {"only": 1.0}},
        {"feedback_stats": {"correctness": {"n": 1, "avg": 1.0}}},
        {"evaluation": {"passed": True}},
        {"evaluations": [{"name": "passed", "value": "yes"}]},
        {"outcome": "success"},
        {"label": True},
    ],
)
def test_verdicts_among_the_scores_of_a_row(judged: dict[str, Any], tmp_path: Path):
    lost = re.sub(r"\b(1.0|1)\b", "0", json.dumps(judged))
    for yes, no in (("true", "false"), ("success", "fail"), ("yes", "no")):
        lost = lost.replace(yes, no)
    messages = [said("user", "q"), said("assistant", "a")]
    log = write_lines(
        tmp_path / "s.jsonl",
        {"messages": messages, **judged},
        {"messages": messages, **json.loads(lost)},
    )
    report = imported(log, tmp_path / "store")
    assert (report.num_success, report.num_failed, report.left_out) == (1, 1, {})


def test_several_scores_without_a_name_of_a_verdict_are_none(tmp_path: Path):
    messages = [said("user", "q"), said("assistant", "a")]
    log = write_lines(
        tmp_path / "s.jsonl",
        {"messages": messages, "scores": {"tone": 1, "style": 0}, "label": "cat"},
    )
    report = imported(log, tmp_path / "store")
    assert report.num_unjudged == 1


def test_a_field_that_tells_no_success_is_counted(tmp_path: Path):
    messages = [said("user", "q"), said("assistant", "a")]
    rows = [
        {"success": "maybe"},
        {"success": 0.5},
        {"correct": "Paris", "reward": 0.0},
        {"correct": "Paris", "metadata": {"is_correct": "yes"}},  # an answer, and a verdict
        {"resolved": "Failed"},
    ]
    log = write_lines(tmp_path / "s.jsonl", *({"messages": messages, **row} for row in rows))
    report = imported(log, tmp_path / "store")
    assert (report.num_success, report.num_failed, report.num_unjudged) == (1, 2, 2)
    assert report.left_out == {
        "`success` that is neither true nor false": 2,
        "`correct` that is neither true nor false": 1,
    }


def test_rewards_and_verdicts_may_be_nested_or_listed(tmp_path: Path):
    messages = [
        said("user", "q"),
        said("assistant", "a"),
        said("user", "r"),
        said("assistant", "b"),
    ]
    nested = {"conversations": messages, "meta": {"task_id": 3, "reward": 0.5, "success": True}}
    listed = {"messages": messages, "rewards": [0.25, 0.5], "score": [0.25, 0.5], "task_id": 3}
    log = write_lines(tmp_path / "n.jsonl", nested, listed)
    report = imported(log, tmp_path / "store", reward="end")
    assert (report.num_groups, report.num_success, report.num_by_return) == (1, 1, 1)
    assert sorted(brief(tmp_path / "store", "reward")) == [(0.0,), (0.0,), (0.5,), (0.75,)]
    turns = imported(write_lines(tmp_path / "l.jsonl", listed), tmp_path / "t", reward="turns")
    assert turns.num_trajectories == 1
    assert brief(tmp_path / "t", "reward") == [(0.25,), (0.5,)]


@pytest.mark.parametrize(
    ("names", "task"),
    [
        ({"task": "exit", "uid": "u1"}, "exit"),
        ({"env_id": "maze", "uid": "u1"}, "maze"),
        ({"uid": "u1"}, "u1"),
        ({"task": {"id": 7, "text": "leave"}}, "7"),
        ({"task": "maze", "info": {"problem_id": "p3"}}, "p3"),
        ({"task": "", "scenario": "storm"}, "storm"),
        ({"input_metadata": {"row_id": "r1"}}, "r1"),
    ],
)
def test_of_several_names_of_a_task_the_surest_makes_the_groups(
    tmp_path: Path, names: dict[str, Any], task: str
):
    log = write_lines(tmp_path / "l.jsonl", row(said("user", "q"), said("assistant", "a"), **names))
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "task_id") == [(task,)]


def test_eval_protocol_has_its_score_in_a_result(tmp_path: Path):
    judged = {"evaluation_result": {"score": 0.25, "is_score_valid": True, "reason": "one of four"}}
    messages = [said("user", "q"), said("assistant", "a")]
    log = write_lines(tmp_path / "logs.jsonl", {"messages": messages, **judged})
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "reward", "success") == [(0.25, None)]


def test_skyrl_has_a_prompt_and_a_reason_to_stop(tmp_path: Path):
    sample = {"input_prompt": "q", "output_response": "a", "score": 0.0, "stop_reason": "length"}
    report = imported(write_lines(tmp_path / "gsm8k.jsonl", sample), tmp_path / "store")
    assert (report.num_files, report.num_truncated) == ({"messages": 1}, 1)


def test_nemo_gym_ends_with_a_placeholder_where_it_has_no_tokens(tmp_path: Path):
    placeholder = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": ""}],
        "prompt_token_ids": [0],
        "generation_token_ids": [0],
        "generation_log_probs": [0.0],
    }
    sample = gym_row()
    sample["response"]["output"].append(placeholder)
    report = imported(write_lines(tmp_path / "r.jsonl", sample), tmp_path / "store")
    assert report.left_out == {"empty message with placeholders for tokens": 1}
    assert len(steps_of(tmp_path / "store")) == 2


def test_calls_that_a_server_of_mcp_ran_have_their_result(tmp_path: Path):
    def call(tool: str, **result: Any) -> dict[str, Any]:
        given = {"type": "mcp_call", "server_label": "maze", "name": tool, "arguments": "{}"}
        return {**given, "output": None, "error": None, **result}

    sample = gym_row(info={"success": "unknown"})
    sample["response"]["output"] = [
        {"type": "mcp_list_tools", "server_label": "maze", "tools": [{"name": "look"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        call("look", output="a hall"),
        call("jump", error={"code": 7}),
        {"type": "message", "role": "assistant", "content": "I give up."},
    ]
    report = imported(write_lines(tmp_path / "r.jsonl", sample), tmp_path / "store")
    assert report.left_out == {"`info.success` that is neither true nor false": 1}
    assert brief(tmp_path / "store", *SEEN) == [
        ("board A", "look({})", "hm"),
        ("a hall", "jump({})", None),
        ('{"code": 7}', "I give up.", None),
    ]
    first = json.loads(steps_of(tmp_path / "store")[0]["extra"])
    assert first["seen"][-1]["tools"] == [{"name": "look"}]


def test_spans_and_pickles_are_refused_with_the_reason(tmp_path: Path):
    report = imported(write_lines(tmp_path / "s.jsonl", ROWS["traces"][0]), tmp_path / "store")
    assert "no span has an answer" in report.bad_rows[0].reason
    (tmp_path / "rollout_3.pt").write_bytes(b"PK\x03\x04")
    report = imported(tmp_path / "rollout_3.pt", tmp_path / "store")
    assert "torch.load(path, weights_only=True)" in report.bad_rows[0].reason


def test_two_images_are_two_states_and_two_tasks(tmp_path: Path):
    def row(image: str, reward: float) -> dict[str, Any]:
        url = {"url": f"data:image/png;base64,{image}"}
        parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": url}]
        asked = {"role": "user", "content": parts}
        return {"reward": reward, "messages": [asked, said("assistant", "cat")]}

    rows = [row(image, reward) for image in ("AAAA", "BBBB") for reward in (0.0, 1.0)]
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    assert report.num_groups == 2
    states = [state for (state,) in brief(tmp_path / "store", "state")]
    assert len(set(states)) == 2
    assert all(state.startswith("What is it?\n[image_url ") for state in states)


@pytest.mark.parametrize("own", [{}, {"reward": 1}])
def test_calls_before_the_results_of_those_before_are_one_answer(
    own: dict[str, Any], tmp_path: Path
):
    calls = [called("look", at=1), {**called("look", at=2), **own}]
    for number, call in enumerate(calls):
        call["tool_calls"][0]["id"] = str(number)
    results = [{"role": "tool", "tool_call_id": str(n), "content": f"hall {n}"} for n in range(2)]
    row = {"messages": [said("user", "where?"), said("assistant", "I look."), *calls, *results]}
    imported(write_lines(tmp_path / "x.jsonl", row), tmp_path / "store")
    one = [("where?", 'look({"at": 1})\nlook({"at": 2})', "I look.")]
    parts = [("where?", 'look({"at": 1})', "I look."), ("where?", 'look({"at": 2})', None)]
    assert brief(tmp_path / "store", "state", "action", "thought") == (parts if own else one)


def test_calls_without_results_are_steps_of_their_own(tmp_path: Path):
    row = {"messages": [said("user", "where?"), called("look", at=1), called("look", at=2)]}
    imported(write_lines(tmp_path / "x.jsonl", row), tmp_path / "store")
    assert len(brief(tmp_path / "store", "action")) == 2
