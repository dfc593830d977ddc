"""Conversations for chat templates that take fewer kinds of messages than a log has."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from graphcredit.store.chat import Chat

Messages: TypeAlias = Sequence[Mapping[str, Any]]

ASK = {"role": "user", "content": "ask"}
_GO = {"role": "assistant", "content": "go"}


def with_text(number: int) -> dict[str, Any]:
    """Return an answer that is a text with a number."""
    return {**_GO, "content": f"go {number}"}


def called_with(number: int) -> dict[str, Any]:
    """Return an answer that calls a tool with a number."""
    function = {"name": "probe", "arguments": {"n": number}}
    call = {"id": "call_0123456789", "type": "function", "function": function}
    return {**_GO, "content": "", "tool_calls": [call]}


def with_arguments_as_text(messages: Messages, tools: Chat | None) -> Chat:
    """Return a conversation in which the arguments of calls are JSON text."""
    return [
        {**message, "tool_calls": [_as_text(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else dict(message)
        for message in messages
    ]


def without_system(messages: Messages, tools: Chat | None) -> Chat:
    """Return a conversation in which a text of the system begins the next message of the user."""
    chat: Chat = []
    heads: list[str] = []
    for message in messages:
        if message["role"] == "system":
            heads.append(message["content"])
        elif heads and message["role"] == "user":
            chat.append({**message, "content": "\n\n".join([*heads, message["content"]])})
            heads = []
        else:
            chat += [_user("\n\n".join(heads))] if heads else []
            chat.append(dict(message))
            heads = []
    return chat


def without_later_system(messages: Messages, tools: Chat | None) -> Chat:
    """Return a conversation whose first messages of the system are one, and others the user's."""
    num = next((n for n, message in enumerate(messages) if message["role"] != "system"), 0)
    texts = [message["content"] for message in messages[:num]]
    head = [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
    return [*head, *without_system(messages[num:], tools)]


def without_tools(messages: Messages, tools: Chat | None) -> Chat:
    """Return a conversation in which calls, results and definitions are texts, as Qwen has them."""
    chat = [_without_calls(message) for message in messages]
    if not tools:
        return chat
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    defined = {"role": "system", "content": f"<tools>\n{lines}\n</tools>"}
    if chat[0]["role"] != "system":
        return [defined, *chat]
    return [{**defined, "content": f"{chat[0]['content']}\n\n{defined['content']}"}, *chat[1:]]


def without_neighbours(messages: Messages, tools: Chat | None) -> Chat:
    """Return a conversation in which messages of the user in a row are one."""
    chat: Chat = []
    for message in messages:
        if chat and message["role"] == chat[-1]["role"] == "user":
            chat[-1] = _user(f"{chat[-1]['content']}\n\n{message['content']}")
        else:
            chat.append(dict(message))
    return chat


def with_turns(messages: Messages, tools: Chat | None) -> Chat:
    """Return a conversation in which an empty message of the user is between two answers."""
    chat: Chat = []
    for message in messages:
        if chat and message["role"] == chat[-1]["role"] == "assistant":
            chat.append(_user(""))
        chat.append(dict(message))
    return chat


class Change(NamedTuple):
    """What a template may not take, and what a log is told in place of it."""

    shown: Chat
    """A conversation that has it."""
    texts: tuple[str, ...]
    """Texts of that, all of which a template that takes it shows."""
    apply: Callable[[Messages, Chat | None], Chat]
    """Returns a conversation, with definitions of tools, without it."""


CALLS = "no calls of tools as they are: they and results are <tool_call> and <tool_response> texts"

_CALLED: Chat = [ASK, called_with(1), {"role": "tool", "content": "seen"}, _GO]
_RULE = {"role": "system", "content": "rule"}

CHANGES: Mapping[str, Change] = {
    "arguments of calls as JSON text alone": Change(
        _CALLED, ("probe", "seen"), with_arguments_as_text
    ),
    CALLS: Change(_CALLED, ("probe", "seen"), without_tools),
    "no message of the system: it begins the user's": Change(
        [_RULE, ASK, _GO], ("rule", "ask"), without_system
    ),
    "no message of the system but the first: later ones begin the user's": Change(
        [_RULE, {**_RULE, "content": "more"}, ASK, _GO, {**_RULE, "content": "late"}, ASK, _GO],
        ("rule", "more", "late"),
        without_later_system,
    ),
    "no two messages of the user in a row: they are one": Change(
        [ASK, {"role": "user", "content": "more"}, _GO], ("ask", "more"), without_neighbours
    ),
    "no two answers in a row: an empty message of the user is between them": Change(
        [ASK, _GO, {**_GO, "content": "went"}], ("went",), with_turns
    ),
}
"""The changes by what notices say of them, in the order in which they are made."""


def _user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _as_text(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function["arguments"]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": arguments}}


def _without_calls(message: Mapping[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        return _user(f"<tool_response>\n{message['content']}\n</tool_response>")
    calls = [json.dumps(c["function"], ensure_ascii=False) for c in message.get("tool_calls", ())]
    texts = [f"<tool_call>\n{call}\n</tool_call>" for call in calls]
    others = {name: value for name, value in message.items() if name != "tool_calls"}
    return {**others, "content": "\n".join(filter(None, [message["content"], *texts]))}
