"""Answers that a limit cut are marked: their models did not end them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.collector.importers.logs import said, write_lines
from tests.collector.importers.read_back import imported, steps_of

ASK = said("user", "ask")
GEMINI = {"role": "model", "parts": [{"text": "so"}]}
BEDROCK = {"role": "assistant", "content": [{"text": "so"}]}


def answered(**more: Any) -> dict[str, Any]:
    return {"messages": [ASK, {**said("assistant", "so"), **more}]}


def called(response: dict[str, Any]) -> dict[str, Any]:
    return {"request": {"messages": [ASK]}, "response": response, "session_id": "s"}


ROWS: list[tuple[dict[str, Any], bool]] = [
    (answered(finish_reason="length"), True),
    (answered(stop_reason="max_tokens"), True),
    (answered(stopReason="maxTokens"), True),
    (answered(status="incomplete"), True),
    (answered(response_metadata={"finish_reason": "length"}), True),
    (answered(finish_reason="stop"), False),
    ({**answered(finish_reason="stop"), "truncated": True}, False),
    ({**answered(), "truncated": True}, True),
    ({**answered(), "finish_reason": "length"}, True),
    ({**answered(), "truncated": True, "stop_reason": "max_turns"}, False),
    ({"messages": [*answered()["messages"], said("user", "more")], "truncated": True}, False),
    (called({"choices": [{"message": said("assistant", "so"), "finish_reason": "length"}]}), True),
    (called({"choices": [{"message": said("assistant", "so"), "finish_reason": "stop"}]}), False),
    (called({"candidates": [{"content": GEMINI, "finishReason": "MAX_TOKENS"}]}), True),
    (called({"output": {"message": BEDROCK}, "stopReason": "max_tokens"}), True),
    (
        {
            "prompt": "ask",
            "completion": {
                "choices": [{"message": said("assistant", "so"), "finish_reason": "length"}]
            },
        },
        True,
    ),
]


@pytest.mark.parametrize(("row", "is_cut"), ROWS, ids=range(len(ROWS)))
def test_the_reason_of_an_end_says_whether_it_was_cut(
    row: dict[str, Any], is_cut: bool, tmp_path: Path
):
    log = write_lines(tmp_path / "log.jsonl", {"task_id": "t", "reward": 1.0, **row})
    imported(log, tmp_path / "store")
    (step,) = steps_of(tmp_path / "store")
    assert (step["action"], json.loads(step["extra"]).get("cut", False)) == ("so", is_cut)
