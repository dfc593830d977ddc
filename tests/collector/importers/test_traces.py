"""Traces and logs of calls: one set of chats is one store, whoever wrote it."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.report import ImportReport
from tests.collector.importers.logs import said, write_lines
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.collector.importers.trace_writers import WRITERS, chats, langfuse

COLUMNS = ("task_id", "state", "action", "thought", "reward", "success")


def told(store: Path) -> list[Any]:
    return sorted(tuple(str(row[name]) for name in COLUMNS) for row in steps_of(store))


@pytest.mark.parametrize("name", WRITERS)
def test_chats_become_the_same_steps_whoever_wrote_them(name: str, tmp_path: Path):
    rows = [{**chat, "reward": chat["score"]} for chat in chats()]
    imported(write_lines(tmp_path / "chats.jsonl", *rows), tmp_path / "right")
    lines = [line for chat in chats() for line in WRITERS[name](chat)]
    report = imported(write_lines(tmp_path / "log.jsonl", *lines), tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows, report.left_out) == (4, 0, {})
    assert told(tmp_path / "store") == told(tmp_path / "right")


def turn(chat: str, number: int, *given: Any, answer: str, **more: Any) -> dict[str, Any]:
    """Return a trace of Langfuse with one call."""
    trace = f"{chat}-{number}"
    return {
        "id": trace,
        "timestamp": f"2026-11-20T09:0{number}:00Z",
        "sessionId": chat,
        "tags": [],
        "input": given[-1]["content"],
        "output": answer,
        "observations": [
            {
                "id": f"{trace}-o",
                "traceId": trace,
                "type": "GENERATION",
                "startTime": f"2026-11-20T09:0{number}:01Z",
                "input": {"messages": list(given), "tools": []},
                "output": said("assistant", answer),
            }
        ],
        **more,
    }


def read(tmp_path: Path, *rows: Any) -> tuple[ImportReport, list[Any]]:
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    return report, brief(tmp_path / "store", "trajectory_id", "state", "action", "reward")


HELP, HI, MORE = said("system", "Help."), said("user", "hi"), said("user", "and then?")
SCORE = {"scores": [{"name": "quality", "value": 1}]}


@pytest.mark.parametrize("before", [(HI, said("assistant", "a")), ()])
def test_traces_of_a_session_are_one_conversation(before: tuple[Any, ...], tmp_path: Path):
    first = turn("s", 1, HELP, HI, answer="a")
    report, steps = read(tmp_path, turn("s", 2, HELP, *before, MORE, answer="b", **SCORE), first)
    assert report.num_success == 1
    assert steps == [("s", "hi", "a", 0.0), ("s", "and then?", "b", 1.0)]


def test_traces_of_a_session_that_are_judged_one_by_one_are_rollouts(tmp_path: Path):
    rows = [turn("s", n, HELP, HI, answer="ab"[n], scores={"exit": [n]}) for n in range(2)]
    assert read(tmp_path, *rows)[1] == [("s-0", "hi", "a", 0.0), ("s-1", "hi", "b", 1.0)]


def test_agents_below_a_tool_and_judges_are_counted(tmp_path: Path):
    (trace,) = langfuse(chats()[0])
    trace["observations"][-1]["id"] = "tool"
    (helper,) = turn("x", 9, HELP, HI, MORE, answer="x")["observations"]
    (judge,) = turn("x", 9, said("user", "Is it good?"), answer="yes")["observations"]
    ids = {"traceId": trace["id"]}
    helpers = [
        {
            **helper,
            **ids,
            "id": f"h{n}",
            "parentObservationId": "tool",
            "startTime": f"2026-11-2{n}",
        }
        for n in range(3)
    ]
    found = {**ids, "id": "r", "type": "RETRIEVER", "output": ["a page about doors"] * 9}
    trace["observations"] += [*helpers, {**judge, **ids, "id": "j"}, found]
    report, steps = read(tmp_path, trace)
    assert [step[2] for step in steps][-1] == "I am in the garden."
    assert len(steps) == 3
    reason = "model call that is not on the way to the last answer of its trace"
    helper_span = "span of a retriever, an embedding, a guardrail or an evaluator"
    assert report.left_out == {reason: 4, helper_span: 1}
    assert not report.coverage["traces"].unread


def test_a_judge_behind_one_answer_is_not_the_agent(tmp_path: Path):
    trace = turn("s", 1, HELP, HI, answer="a")
    (judge,) = turn("s", 1, said("user", "Is it good?"), answer="yes")["observations"]
    trace["observations"].append({**judge, "id": "j", "startTime": "2026-11-21"})
    assert read(tmp_path, trace)[1] == [("s", "hi", "a", 0.0)]


def test_the_conversation_may_be_in_an_agent_alone(tmp_path: Path):
    (chat, *_) = chats()
    events = [
        {"event.name": f"gen_ai.{message['role']}.message", **message}
        for message in chat["messages"]
    ]
    agent = {"trace_id": "t", "span_id": "a", "name": "agent run"}
    attributes = {"all_messages_events": json.dumps(events), "score": 1, "task_id": "hall"}
    _, steps = read(tmp_path, {**agent, "attributes": attributes})
    assert len(steps) == 3
    assert steps[-1] == ("t", "the garden", "I am in the garden.", 1.0)


@pytest.mark.parametrize(
    ("scores", "reward"),
    [
        ({"tone": {"avg": 0.2}, "correctness": {"n": 1, "avg": 1.0}}, 1.0),
        ([{"key": "exit", "score": 0.5}], 0.5),
        ([{"name": "exit", "label": "pass"}], 1.0),
        ([{"name": "a", "value": 1}, {"name": "b", "value": 0}], 0.0),  # nobody knows which
    ],
)
def test_the_score_is_the_reward(scores: Any, reward: float, tmp_path: Path):
    trace = turn("s", 1, HELP, HI, answer="a", feedback_stats=scores)
    report, steps = read(tmp_path, trace)
    assert steps[-1][-1] == reward
    assert report.num_unjudged == (reward == 0)


def test_the_output_of_the_root_may_have_the_verdict_and_that_of_a_tool_has_none(tmp_path: Path):
    root = {"trace_id": "t", "id": "r", "op_name": "rollout", "output": {"success": True}}
    calls = [
        {"trace_id": "t", "id": f"{n}", "parent_id": "r", "op_name": "openai.chat", "inputs": {}}
        for n in range(2)
    ]
    calls[0] |= {
        "inputs": {"messages": [HI]},
        "output": {"choices": [{"message": said("assistant", "a")}]},
    }
    calls[1] |= {"op_name": "tool", "output": {"success": False}}
    report, _ = read(tmp_path, root, *calls)
    assert (report.num_success, report.num_failed) == (1, 0)
    (tmp_path / "other").mkdir()
    report, _ = read(tmp_path / "other", {**root, "output": None}, *calls)
    assert report.num_unjudged == 1


def test_spans_without_answers_are_refused_in_one_sentence(tmp_path: Path):
    span = {"trace_id": "t", "span_id": "a", "name": "chat m", "attributes": {}}
    asked = {**span, "attributes": {"gen_ai.input.messages": json.dumps([HI])}}
    log = write_lines(tmp_path / "log.jsonl", span, {**span, "trace_id": "u"}, asked)
    (row,) = imported(log, tmp_path / "store").bad_rows
    assert "no span has an answer" in row.reason
    assert row.reason.endswith("Most of their text is in `attributes.gen_ai.input.messages`")


@pytest.mark.parametrize("name", WRITERS)
def test_a_text_that_nobody_reads_is_named(name: str, tmp_path: Path):
    lines = [line for chat in chats() for line in WRITERS[name](chat)]
    rows = [{**line, "remark": "nobody knows what this is"} for line in lines]
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    (coverage,) = report.coverage.values()
    (field,) = coverage.unread
    assert field.endswith(".remark")
