"""The data of the conversation's component: messages as JSON, the credit of each step beside it."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from graphcredit.store.log_text import one_line, visible
from graphcredit.viewer.chat.texts import Part
from graphcredit.viewer.chat.transcript import ShownMessage
from graphcredit.viewer.steps.facts import largest, value_of
from graphcredit.viewer.widgets.colours import diverging

MOST_CHARACTERS = 400_000
"""Characters of a conversation that go to the browser with every step; of a longer one, the texts
of other steps than the chosen one are cut."""
CUT = 4_000
"""Characters that are left of a text that is cut."""


def drawn_messages(
    messages: Sequence[ShownMessage], table: pa.Table, *, step: int, estimator: str | None
) -> dict[str, Any]:
    """Return the data of the component.

    Args:
        messages: The conversation.
        table: The steps that it is of, with their credit.
        step: Row of the step that is shown.
        estimator: Whose advantages stand beside the steps; None for none.
    """
    length = sum(len(part.text) for message in messages for part in message.parts)
    limit = 0.0 if estimator is None else largest(table, [estimator])
    indices = table["step_index"].to_pylist()
    drawn: list[dict[str, Any]] = []
    for message in messages:
        most = CUT if length > MOST_CHARACTERS and message.step != step else None
        told = {
            "kind": message.kind,
            "speaker": visible(message.speaker),
            "row": message.step,
            "parts": [_part(part, most) for part in message.parts],
        }
        if message.is_error:
            told["isError"] = True
        if message.same_as is not None:
            told["sameAs"] = indices[message.same_as]
        if message.is_step:
            index = indices[message.step]
            told["step"] = index
            told["about"] = one_line(table["action"][message.step].as_py())
            told |= _credit(table, message.step, estimator, limit)
        drawn.append(told)
    signature = hashlib.sha256(json.dumps(drawn, sort_keys=True).encode()).hexdigest()
    return {"messages": drawn, "row": step, "signature": signature}


def _part(part: Part, most: int | None) -> dict[str, Any]:
    num_left = 0 if most is None else max(len(part.text) - most, 0)
    text = part.text[: len(part.text) - num_left]
    return {
        "title": visible(part.title),
        "text": visible(text),
        "isCode": part.is_code,
        "numLeft": num_left,
    }


def _credit(table: pa.Table, step: int, estimator: str | None, limit: float) -> dict[str, Any]:
    value = None if estimator is None else value_of(table, f"{estimator}_advantage", step)
    if value is None:
        return {}
    return {
        "advantage": f"{value:+.3f}",
        "colour": diverging(value, limit),
        "share": round(value / limit, 3) if limit else 0.0,
    }
