"""Messages of any dialect as OpenAI's: what chat templates take."""

import json
from collections.abc import Mapping
from typing import Any

from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.rollout import ASSISTANT, Message
from graphcredit.collector.importers.messages.values import MALFORMED, RecordError, fields_of

_TEXTS = ("response", "output", "text", "content")
"""Fields of an answer without a role that are its whole text, the first one that is there."""


def read_dialect(raw: Mapping[str, Any], is_answer: bool) -> list[dict[str, Any]] | None:
    """Return the chat messages that a message of a log is; None if it cannot be read.

    Args:
        raw: The message as the log has it.
        is_answer: Whether it is the policy's, so that it needs no role.
    """
    if is_answer and len(raw.keys() - {"role"}) == 1 and (text := _only_text(raw)) is not None:
        return [{"role": ASSISTANT, "content": text}]
    try:
        messages = chat_messages([raw], "message")
    except (RecordError, *MALFORMED):
        return None
    if any(message.image_parts or message.num_unread for message in messages):
        return None
    return [_as_openai(message) for message in messages]


def _only_text(raw: Mapping[str, Any]) -> str | None:
    return next((raw[name] for name in _TEXTS if isinstance(raw.get(name), str)), None)


def _as_openai(message: Message) -> dict[str, Any]:
    calls = [
        {"type": "function", "function": {"name": c.name, "arguments": _object(c.arguments)}}
        for c in message.tool_calls
    ]
    return {
        "role": message.role,
        "content": message.text,
        **({"reasoning_content": message.thought} if message.thought else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def _object(arguments: str) -> object:
    try:
        return fields_of(json.loads(arguments)) or arguments
    except ValueError:
        return arguments
