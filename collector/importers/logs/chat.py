"""Read chat messages: OpenAI's with tool calls, and dialects of it."""

import re
from collections.abc import Mapping
from typing import Any, cast

from graphcredit.collector.importers.logs.image_parts import images_of
from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Message,
    ToolCall,
)
from graphcredit.collector.importers.logs.values import (
    RecordError,
    as_list,
    as_mapping,
    canonical_text,
    first_of,
    parse_json,
    short,
    text_of_content,
)

_ROLES = {
    **dict.fromkeys(("assistant", "gpt", "ai", "model", "agent", "bot"), ASSISTANT),
    **dict.fromkeys(("system", "developer"), SYSTEM),
    **dict.fromkeys(("user", "human", "environment"), USER),
    **dict.fromkeys(("tool", "function", "observation", "ipython"), TOOL),
    **dict.fromkeys(("tool_response", "tool_result", "function_response"), TOOL),
}
_CALLS = ("function_call", "tool_call")
"""Roles of messages that are a call, as JSON text."""

_THINKING = re.compile(r"\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)


def is_chat(value: object) -> bool:
    """Return whether a value is a list that begins with a chat message."""
    if not isinstance(value, list) or not value:
        return False
    first = cast("list[object]", value)[0]
    if not isinstance(first, Mapping):
        return False
    return _role_of(_translated(cast("Mapping[str, Any]", first))) is not None


def chat_messages(value: object, what: str, *, is_context: bool = False) -> tuple[Message, ...]:
    """Return the messages of a list.

    Args:
        value: A list of messages.
        what: What the list is called in the record, for messages of errors.
        is_context: Whether it is a prompt, whose assistant messages are no steps.

    Raises:
        RecordError: An item is no message, or its role is unknown.
    """
    return tuple(
        [
            _message(item, what, number, is_context=is_context)
            for number, item in enumerate(as_list(value, what))
        ]
    )


def chat_message(value: object, what: str, *, is_context: bool = False) -> Message:
    """Return one message; see `chat_messages`."""
    return _message(value, what, None, is_context=is_context)


def _message(value: object, what: str, number: int | None, *, is_context: bool) -> Message:
    """Return an item of a list; its name is made only for messages of errors."""
    raw = cast("Mapping[str, Any]", value)
    if not isinstance(value, dict):
        raw = as_mapping(value, _name(what, number))
    if None in raw.values():
        raw = {k: v for k, v in raw.items() if v is not None}
    source, role = raw, raw.get("role")
    role = _ROLES.get(role) if isinstance(role, str) else None
    if role is None:
        raw = _translated(raw)
        role = _role_of(raw)
    if role is None:
        roles = ", ".join((*_ROLES, *_CALLS))
        raise RecordError(f"{_name(what, number)} must have a role ({roles}): got {short(raw)}")
    content = raw.get("content")
    if content is None:
        content = first_of(raw, ("value", "text", "parts"))
    text = content if isinstance(content, str) else text_of_content(content)
    images = images_of(content)
    if role != ASSISTANT:
        return Message(
            role=role, text=text, is_context=is_context, image_parts=images, source=source
        )
    inline, text = split_thinking(text) if text else ("", "")
    reasoning = first_of(raw, _REASONING)
    apart = "" if reasoning is None else text_of_content(reasoning)
    if isinstance(content, list):
        apart = apart or _reasoning_of_parts(content)
    return Message(
        role=role,
        text=text,
        thought="\n\n".join((apart, inline)) if apart and inline else apart or inline,
        tool_calls=_tool_calls(raw, content, what, number),
        is_context=is_context,
        image_parts=images,
        source=source,
    )


_REASONING = ("reasoning_content", "reasoning", "thinking")


def _name(what: str, number: int | None) -> str:
    return what if number is None else f"{what}[{number}]"


def _role_of(raw: Mapping[str, Any]) -> str | None:
    role = raw.get("role")
    if role is None:
        role = raw.get("from")
    if role is None:
        role = raw.get("type")
    if not isinstance(role, str):
        return None
    return _ROLES.get(role.lower().removesuffix("chunk").removesuffix("message"))


def _translated(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message of LangChain, or one whose role says that it is a call, as OpenAI has it.

    LangChain has the fields in `data`, or in `kwargs` beside the path of a class.
    """
    inner = first_of(raw, ("data", "kwargs"))
    if isinstance(inner, Mapping):
        fields = cast("Mapping[str, Any]", inner)
        path = raw.get("id")
        kind = path[-1] if isinstance(path, list) and path else raw.get("type")
        return {
            "type": kind,
            **(fields.get("additional_kwargs") or {}),
            **{name: value for name, value in fields.items() if value not in (None, [])},
        }
    if first_of(raw, ("role", "from")) in _CALLS:
        content = first_of(raw, ("content", "value"))
        calls = parse_json(content) if isinstance(content, str) else content
        if isinstance(calls, list | dict):
            return {"role": ASSISTANT, "tool_calls": calls if isinstance(calls, list) else [calls]}
        return {**raw, "role": ASSISTANT}
    return raw


def split_thinking(text: str) -> tuple[str, str]:
    """Return the reasoning in <think> tags that a text begins with, and the rest."""
    match = _THINKING.match(text) if text and text[0] in "< \n\t\r" else None
    return (match[1].strip(), text[match.end() :]) if match else ("", text)


def _parts(content: object) -> list[Mapping[str, Any]]:
    if not isinstance(content, list):
        return []
    parts = cast("list[object]", content)
    return [cast("Mapping[str, Any]", part) for part in parts if isinstance(part, Mapping)]


def _reasoning_of_parts(content: object) -> str:
    return "\n".join(
        text_of_content(first_of(part, ("reasoning", "thinking")))
        for part in _parts(content)
        if part.get("type") in ("reasoning", "thinking")
    )


def _tool_calls(
    raw: Mapping[str, Any], content: object, what: str, number: int | None
) -> tuple[ToolCall, ...]:
    calls = raw.get("tool_calls")
    if isinstance(calls, str):
        calls = parse_json(calls)
    found: list[object] = []
    if calls is not None:
        is_list = isinstance(calls, list)
        found += calls if is_list else as_list(calls, f"{_name(what, number)}.tool_calls")
    if raw.get("function_call"):
        found.append(raw["function_call"])
    if isinstance(content, list):
        found += [part for part in _parts(content) if part.get("type") == "tool_use"]
    return tuple([_tool_call(call, what, number) for call in found])


def tool_call(value: object, what: str) -> ToolCall:
    """Return a tool call; verifiers' older logs have it as JSON text.

    Raises:
        RecordError: It is no tool call.
    """
    return _tool_call(value, what, None)


def _tool_call(value: object, what: str, number: int | None) -> ToolCall:
    call: object = parse_json(value) if isinstance(value, str) else value
    if not isinstance(call, dict):
        raise RecordError(f"{_name(what, number)}: a call must be a JSON object: got {short(call)}")
    function = call.get("function")
    if function is None:
        function = call.get("custom")
    inner: Mapping[str, Any] = function if isinstance(function, dict) else call
    name = inner.get("name")
    if name is None:
        name = first_of(inner, ("function", "function_name"))
    if not isinstance(name, str):
        raise RecordError(
            f"{_name(what, number)}: a call must have the name of its tool: got {short(call)}"
        )
    arguments = inner.get("arguments")
    if arguments is None:
        arguments = first_of(inner, ("input", "args"))
    return ToolCall(name, canonical_text(arguments))
