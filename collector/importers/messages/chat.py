"""Read chat messages: OpenAI's with tool calls, and dialects of it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from graphcredit.collector.importers.messages.content import images_of, text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Message,
    ToolCall,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_list,
    as_mapping,
    canonical_text,
    fields_of,
    first_of,
    parse_json,
    short,
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
    first = fields_of(cast("list[object]", value)[0])
    return _role_of(_translated(first)) is not None


def chat_messages(value: object, what: str, *, is_context: bool = False) -> tuple[Message, ...]:
    """Return the messages of a list.

    Args:
        value: A list of messages.
        what: What the list is called in the record, for messages of errors.
        is_context: Whether it is a prompt, whose assistant messages are no steps.

    Raises:
        RecordError: An item is no message, or its role is unknown.
    """
    items = enumerate(as_list(value, what))
    return tuple([_message(item, what, number, is_context=is_context) for number, item in items])


def chat_message(value: object, what: str, *, is_context: bool = False) -> Message:
    """Return one message; see `chat_messages`."""
    return _message(value, what, None, is_context=is_context)


def seen(role: str, content: object, source: Mapping[str, Any], **more: Any) -> Message:
    """Return a message with the text and the images of a content.

    Args:
        role: Who says it.
        content: Text or parts.
        source: The message as the log has it.
        **more: Further fields of `Message`.
    """
    text, images = text_of_content(content), images_of(content)
    return Message(role=role, text=text, image_parts=images, source=dict(source), **more)


def answer(text: str, source: Mapping[str, Any], **more: Any) -> Message:
    """Return a message of the policy, whose text may begin with its reasoning."""
    thought, spoken = split_thinking(text)
    return Message(role=ASSISTANT, text=spoken, thought=thought, source=source, **more)


def joined_answer(first: Message, *others: Message) -> Message:
    """Return the messages of one answer as one: texts, reasoning, calls and images in order."""
    if not others:
        return first
    messages = (first, *others)
    return replace(
        first,
        text="\n\n".join(message.text for message in messages if message.text),
        thought="\n\n".join(message.thought for message in messages if message.thought),
        tool_calls=tuple(call for message in messages for call in message.tool_calls),
        image_parts=tuple(part for message in messages for part in message.image_parts),
    )


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
    if isinstance(content, list) and not apart:
        parts = map(fields_of, cast("list[object]", content))
        spoken = [part for part in parts if part.get("type") in ("reasoning", "thinking")]
        apart = "\n".join(text_of_content(first_of(each, _REASONING[1:])) for each in spoken)
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
        fields, path = fields_of(inner), raw.get("id")
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


def _tool_calls(
    raw: Mapping[str, Any], content: object, what: str, number: int | None
) -> tuple[ToolCall, ...]:
    calls = raw.get("tool_calls")
    if isinstance(calls, str):
        calls = parse_json(calls)
    listed: list[object] = []
    if calls is not None:
        is_list = isinstance(calls, list)
        listed += calls if is_list else as_list(calls, f"{_name(what, number)}.tool_calls")
    if raw.get("function_call"):
        listed.append(raw["function_call"])
    if isinstance(content, list):
        parts = map(fields_of, cast("list[object]", content))
        listed += [part for part in parts if part.get("type") == "tool_use"]
    return tuple([_tool_call(call, what, number) for call in listed])


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
