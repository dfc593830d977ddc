"""Dumps of verl, `{step}.jsonl`: a row a rollout, with the texts of prompt and answer."""

import re
from collections.abc import Iterator
from pathlib import Path

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import answer
from graphcredit.collector.importers.messages.rollout import (
    TOOL,
    USER,
    LoggedRollout,
    Message,
    Rollouts,
)
from graphcredit.collector.importers.messages.values import (
    as_integer,
    as_mapping,
    as_number,
    as_text,
    fields_of,
    numbers_of,
    without,
)

_RESULT = re.compile(
    r"\s*user\n(?P<tool><tool_response>.*?</tool_response>)\s*assistant\n"
    r"|(?P<search><information>.*?</information>)",
    re.DOTALL,
)
"""What the environment said within an answer: results of tools in Qwen's template, whose special
tokens verl leaves out, or those of a search."""


def is_verl(value: object, path: Path) -> bool:
    """Return whether a record is a row of verl."""
    row = fields_of(value)
    texts = row.get("input"), row.get("output")
    has_turns = isinstance(row.get("steps"), list)  # Agent-R1
    is_like = {"score", "step"} <= row.keys() and not has_turns
    return is_like and all(isinstance(text, str) for text in texts)


def read_verl(record: Record) -> Rollouts:
    """Yield the rollout of a row; the results of tools cut its answer into turns."""
    row = as_mapping(record.value, "a row")
    prompt = Message(role=USER, text=row["input"], source={"input": row["input"]})
    yield LoggedRollout(
        messages=(prompt, *_turns(row["output"])),
        record=row,
        label=f"step-{row['step']}",
        group=as_text(row.get("uid")),
        iteration=as_integer(row["step"]),
        reward=as_number(row["score"], "score"),
        rewards=numbers_of(without(row, ("step",))),
        info=without(row, ("input", "output")),
    )


def _turns(text: str) -> Iterator[Message]:
    start = 0
    for match in _RESULT.finditer(text):
        spoken, result = text[start : match.start()], match["tool"] or match["search"]
        yield answer(spoken, {"output": spoken})
        yield Message(role=TOOL, text=result, source={"output": result})
        start = match.end()
    if text[start:].strip() or not start:
        yield answer(text[start:], {"output": text[start:]})
