"""Chat messages as OpenAI has them, which chat templates of models take: read strictly."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from graphcredit.store.files.parse import parse_json

Chat: TypeAlias = list[dict[str, Any]]
"""Messages with `role` and `content`, and `tool_calls` whose arguments are objects.

A content with images is a list of parts, `{"type": "text", "text": …}` and `{"type": "image"}`.
"""

CHAT_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Roles of messages to those of chat templates."""

_TEXTS = ("text", "input_text", "output_text")
_IMAGES = ("image", "image_url", "input_image")
_KEPT = ("name", "tool_call_id", "reasoning_content", "reasoning", "thinking")
_KNOWN = {"role", "content", "tool_calls", *_KEPT}


def openai_message(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a message of OpenAI's shape, as a chat template takes it.

    None if it is of another shape, or has parts but texts and images: nothing of it is left out.

    Args:
        raw: The message as a log has it. Names and numbers beside its fields are no part of it.
    """
    if not is_openai_message(raw):
        return None
    role, text, calls = CHAT_ROLES[raw["role"]], _content(raw.get("content")), _calls(raw)
    kept = {name: raw[name] for name in _KEPT if raw.get(name)}
    return {"role": role, "content": text, **kept, **({"tool_calls": calls} if calls else {})}


def is_openai_message(raw: Mapping[str, Any]) -> bool:
    """Return whether `openai_message` returns one, sooner than that makes it."""
    content, calls = raw.get("content"), raw.get("tool_calls")
    is_said = content is None or isinstance(content, str) or _content(content) is not None
    if not is_said or not _are_calls(calls) or str(raw.get("role")) not in CHAT_ROLES:
        return False
    if not raw.keys() <= _KNOWN:
        others = [value for name, value in raw.items() if name not in _KNOWN and value is not None]
        if any(isinstance(value, dict | list) and value for value in others):
            return False
        if others and not (calls or _content(content)):
            return False
    return raw.keys().isdisjoint(_KEPT) or all(
        isinstance(raw[name], str) for name in _KEPT if raw.get(name)
    )


def _content(content: Any) -> str | Chat | None:
    """Return the text of a content, or its parts if some are images; None if others are."""
    if content is None or isinstance(content, str):
        return content or ""
    parts: Chat = []
    for part in cast("list[Any]", content) if isinstance(content, list) else [None]:
        fields = cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {}
        text = fields.get("text")
        if fields.get("type") in _IMAGES:
            parts.append({"type": "image"})
        elif fields.get("type") in _TEXTS and isinstance(text, str):
            parts.append({"type": "text", "text": text})
        else:
            return None
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return "".join(texts) if len(texts) == len(parts) else parts


def _are_calls(raw: object) -> bool:
    """Return whether a value is a list of tool calls, or null."""
    if raw is None:
        return True
    for call in cast("list[Any]", raw) if isinstance(raw, list) else [None]:
        # Most are dictionaries, which are sooner seen to be so than to be mappings.
        function = call.get("function") if isinstance(call, dict | Mapping) else None
        if not isinstance(function, dict | Mapping) or type(function.get("name")) is not str:
            return False
    return True


def _calls(raw: Mapping[str, Any]) -> Chat:
    """Return the tool calls of a message, with arguments as objects."""
    calls: Chat = []
    for fields in raw.get("tool_calls") or ():
        function = fields["function"]
        named = {"name": function["name"], "arguments": call_arguments(function.get("arguments"))}
        of_id = {"id": fields["id"]} if fields.get("id") else {}
        calls.append({**of_id, "type": "function", "function": named})
    return calls


def call_arguments(raw: Any) -> Any:
    """Return arguments of a call as an object in the order of the log; other texts as they are."""
    if not isinstance(raw, str):
        return raw or {}
    try:
        value = parse_json(raw)
    except ValueError:
        return raw
    return value if isinstance(value, dict) else raw
