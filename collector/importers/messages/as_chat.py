"""Messages of any dialect as OpenAI's, where the log has them otherwise: for chat templates."""

from collections.abc import Sequence
from typing import Any

from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    Message,
    ToolCall,
    Turn,
    are_plain,
)
from graphcredit.collector.importers.messages.worded_calls import OPEN
from graphcredit.store.chat import Chat, call_arguments, is_openai_message


def chat_of(turn: Turn) -> Chat | None:
    """Return what a step saw, and its answer, as chat messages.

    None if the log has them as OpenAI's already, or they have parts that no reader knows, or images
    that are not kept.
    """
    messages = (*turn.seen, turn.message)
    if are_plain(messages):
        return None
    if not turn.message.source or _is_openai(messages):
        return None
    if any(m.num_unread or len(m.images) < len(m.image_parts) for m in messages):
        return None
    chat = [_as_chat(message) for message in messages]
    return None if any(message["content"] is None for message in chat) else chat


def _is_openai(messages: Sequence[Message]) -> bool:
    sources = [message.source for message in messages]
    return all(sources) and all(map(is_openai_message, sources))


def _as_chat(message: Message) -> dict[str, Any]:
    raw = message.source.get("content")
    # What a reader took out of the text is a part of what was said: a command, a call in words.
    is_called = bool(message.calls_text) and not message.said  # the whole message is its calls
    is_whole = isinstance(raw, str) and message.role == ASSISTANT and not is_called
    text = raw if is_whole else message.said or message.text
    text = text or ("" if message.tool_calls else message.action)
    calls = [
        {"type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
        for call in message.tool_calls
        if OPEN not in (text or "")
    ]
    thought = message.thought if message.role == ASSISTANT else ""
    return {
        "role": message.role,
        "content": _with_images(text or "", [image.mark for image in message.images]),
        **({"reasoning_content": thought} if thought and thought not in (text or "") else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def _arguments(call: ToolCall) -> Any:
    return call_arguments(call.arguments if call.logged is None else call.logged)


def _with_images(text: str, marks: Sequence[str]) -> str | Chat | None:
    """Return a text, as parts if some are images; None if it lacks the mark of one."""
    parts: Chat = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            return None
        parts += [{"type": "text", "text": before}] if before else []
        parts.append({"type": "image"})
    return [*parts, *([{"type": "text", "text": text}] if text else [])] if parts else text
