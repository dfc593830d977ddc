"""Logs of calls: which rows are one rollout, and which are not."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.formats.calls import chains
from graphcredit.collector.importers.messages.chat import chat_messages
from tests.collector.importers.logs import called, said, write_lines
from tests.collector.importers.read_back import brief, imported
from tests.collector.importers.trace_writers import chats, growing, lite_llm, responses

HALL = [said("user", "hall"), said("assistant", "north"), said("user", "kitchen")]
WON, LOST = [*HALL, said("assistant", "out")], [*HALL, said("assistant", "north")]
TWO_STEPS = [("hall", "north"), ("kitchen", "north"), ("hall", "north"), ("kitchen", "out")]


def calls(messages: list[Any], **more: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each answer, with all messages so far."""
    for number in range(2, len(messages) + 1, 2):
        yield {"task_id": "t", "messages": messages[:number], **more}


def asked(*given: dict[str, Any], answer: dict[str, Any], **more: Any) -> dict[str, Any]:
    request, response = {"messages": list(given)}, {"choices": [{"message": answer}]}
    return {"task_id": "t", "session_id": "s", "request": request, "response": response, **more}


def read(tmp_path: Path, *rows: object) -> list[tuple[Any, ...]]:
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    assert not report.bad_rows
    return brief(tmp_path / "store", "state", "action")


SYSTEM = said("system", "Find the exit.")
LOOKED = [SYSTEM, said("user", "hall"), called("look"), said("tool", "a door, an old clock")]
OPENED = [called("open", what="door"), said("tool", "the garden")]


@pytest.mark.parametrize(
    ("cut", "seen"),
    [
        ([*LOOKED, *OPENED], "the garden"),
        ([SYSTEM, *OPENED], "the garden"),  # the oldest messages are gone
        ([SYSTEM, said("user", "So far: a door."), *OPENED], "the garden"),
        (  # a summary stands for all that was said
            [SYSTEM, LOOKED[1], said("user", "You opened the door.")],
            "You opened the door.",
        ),
    ],
)
def test_calls_go_on_where_the_context_was_cut(cut: list[Any], seen: str, tmp_path: Path):
    rows = [
        asked(*LOOKED[:2], answer=LOOKED[2]),
        asked(*LOOKED, answer=OPENED[0]),
        asked(*cut, answer=said("assistant", "done"), reward=1),
    ]
    assert read(tmp_path, *rows) == [
        ("hall", "look({})"),
        ("a door, an old clock", 'open({"what": "door"})'),
        (seen, "done"),
    ]


def test_a_long_summary_makes_no_trajectories_of_calls(tmp_path: Path):
    begin = [*LOOKED, *OPENED]
    summary = said("user", "So far: " + "a door led to the garden, where birds sing. " * 9)
    rows = [
        asked(*begin[:2], answer=begin[2]),
        asked(*begin[:4], answer=begin[4]),
        asked(SYSTEM, summary, *OPENED, answer=said("assistant", "done")),
    ]
    path = write_lines(tmp_path / "log.jsonl", *rows)
    report = imported(path, tmp_path / "store", max_unread=90)
    assert (report.num_files, report.num_trajectories) == ({"calls": 1}, 1)
    assert any("messages.*.content`: 1 of 1" in note for note in report.notes)


def test_rollouts_of_one_session_stay_apart(tmp_path: Path):
    one = {"session_id": "experiment"}
    whole = [{"task_id": "t", "messages": m, **one} for m in (LOST, WON, LOST)]
    assert len(read(tmp_path / "rows", *whole)) == 6
    grown = [row for messages in (LOST, WON, LOST) for row in calls(messages, **one)]
    assert len(read(tmp_path / "calls", *grown)) == 6
    single = [asked(said("user", "q"), answer=said("assistant", "a")) for _ in range(3)]
    assert read(tmp_path / "single", *single) == [("q", "a")] * 3


def test_rows_that_go_on_are_one_rollout_without_an_id_too(tmp_path: Path):
    rows = [calls(LOST, reward=0), calls(WON, reward=1), calls(WON, reward=1)]
    mixed = list(chain.from_iterable(zip(*rows, strict=True)))
    assert sorted(read(tmp_path, *mixed)) == sorted([*TWO_STEPS, *TWO_STEPS[2:]])
    assert {row[0] for row in brief(tmp_path / "store", "task_id")} == {"t"}


@pytest.mark.parametrize("writer", [lite_llm, responses, growing])
def test_the_order_of_rows_does_not_matter_where_they_have_ids(writer: Any, tmp_path: Path):
    each = [[{**row, "conversation_id": c["name"]} for row in writer(c)] for c in chats()]
    straight = read(tmp_path / "straight", *chain.from_iterable(each))
    assert len(straight) == 12
    turned = chain.from_iterable(rows[::-1] for rows in each)
    assert sorted(read(tmp_path / "turned", *turned)) == sorted(straight)


def test_an_agent_that_is_told_all_in_each_call_takes_turns(tmp_path: Path):
    rows = [
        asked(SYSTEM, said("user", f"step {n}"), answer=said("assistant", "go"), step=n, reward=n)
        for n in range(3)
    ]
    assert read(tmp_path, *rows) == [(f"step {n}", "go") for n in range(3)]
    steps = brief(tmp_path / "store", "reward")
    assert steps == [(0.0,), (0.0,), (2.0,)]
    imported(tmp_path / "log.jsonl", tmp_path / "turns", reward="turns")
    assert brief(tmp_path / "turns", "reward") == [(0.0,), (1.0,), (2.0,)]


def test_a_prompt_may_be_one_text_that_grows(tmp_path: Path):
    first = {
        "session_id": "s",
        "prompt": "You are in the hall.\n>",
        "response": "north",
        "reward": 1,
    }
    text = "You are in the hall.\n> north\nYou are in the kitchen.\n>"
    rows = [first, {**first, "prompt": text, "response": "out"}]
    assert read(tmp_path, *rows) == [
        ("You are in the hall.\n>", "north"),
        ("You are in the kitchen.\n>", "out"),
    ]


def test_other_conversations_of_a_session_are_counted(tmp_path: Path):
    helper = asked(said("system", "You help."), said("user", "?"), answer=said("assistant", "!"))
    rows = [{**row, "session_id": "s", "reward": 1} for row in calls(WON)]
    log = write_lines(tmp_path / "log.jsonl", rows[0], helper, rows[1])
    report = imported(log, tmp_path / "store")
    reason = "model call that is not on the way to the last answer of its session"
    assert (report.num_trajectories, report.left_out) == (1, {reason: 1})
    assert brief(tmp_path / "store", "action") == [("north",), ("out",)]


def test_the_verdict_of_a_session_may_be_a_row_of_its_own(tmp_path: Path):
    rows = [{**row, "session_id": s} for s, won in (("a", WON), ("b", LOST)) for row in calls(won)]
    ends = [{"session_id": "a", "event": "end", "reward": 1}, {"session_id": "b", "reward": 0}]
    assert len(read(tmp_path, *rows, *ends)) == 4
    assert sorted(brief(tmp_path / "store", "reward"))[-2:] == [(0.0,), (1.0,)]


def test_agents_of_one_episode_are_rollouts_of_their_own(tmp_path: Path):
    rows = [
        {"episode_id": "e", "agent": who, "prompt": f"{who}?", "completion": "a", "reward": 1}
        for who in ("solver", "judge")
    ]
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    assert report.num_trajectories == 2


def test_calls_may_be_in_a_list_of_their_rollout(tmp_path: Path):
    each = [asked(*WON[:1], answer=WON[1]), asked(*WON[:3], answer=WON[3])]
    assert read(tmp_path, {"task": "exit", "reward": 1, "llm_calls": each}) == TWO_STEPS[2:]
    assert brief(tmp_path / "store", "reward") == [(0.0,), (1.0,)]


def test_calls_without_their_input_and_broken_ones_are_named(tmp_path: Path):
    first = {"id": "r1", "object": "response", "output": [said("assistant", "a")]}
    rows = [first, {**first, "id": "r2", "previous_response_id": "r1"}]
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    (row,) = report.bad_rows
    assert row.reason.startswith("a call must have what the model was given")
    broken = asked(said("user", "q"), {"role": "wizard", "content": "?"}, answer=WON[1])
    rows = [asked(*WON[:1], answer=WON[1]), broken, asked(*WON[:3], answer=WON[3])]
    report = imported(write_lines(tmp_path / "log.jsonl", *rows), tmp_path / "store")
    assert [row.where.rpartition(", ")[2] for row in report.bad_rows] == ["line 2"]
    assert brief(tmp_path / "store", "state", "action") == TWO_STEPS[2:]


def test_responses_that_name_one_another_in_a_circle_are_told_once(tmp_path: Path):
    rows = [
        {
            "id": f"r{n}",
            "object": "response",
            "previous_response_id": f"r{(n + 1) % 3}",
            "input": [said("user", f"q{n}")],
            "output": [{"type": "message", "role": "assistant", "content": f"a{n}"}],
            "conversation": {"id": "c"},
        }
        for n in range(3)
    ]
    assert sorted(read(tmp_path, *rows)) == [("q0", "a0"), ("q1", "a1"), ("q2", "a2")]


def test_a_call_is_compared_with_few_conversations(monkeypatch: pytest.MonkeyPatch):
    def call(*texts: str) -> chains.ModelCall:
        *prompt, answer = chat_messages(
            [said(("user", "assistant")[n % 2], text) for n, text in enumerate(texts)], "calls"
        )
        return chains.ModelCall(prompt=tuple(prompt), answers=(answer,), facts={})

    main = [call("q", "a"), call("q", "a", "r", "b")]
    others = [call(f"q{n}", f"a{n}") for n in range(300)]
    last = call("q", "a", "r", "b", "s", "c")
    compared: list[object] = []
    new_of = chains._new_of  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(
        chains,
        "_new_of",
        lambda *a, **k: compared.append(a) or new_of(*a, **k),  # type: ignore
    )
    joined = chains.joined_calls([*main, *others, last])
    assert [chain.num_calls for chain in joined] == [3, *[1] * 300]
    assert len(compared) < 302 * chains.MOST_OPEN
