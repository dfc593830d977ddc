"""Messages as OpenAI has them, of texts and calls alone: most of what logs have, read quickly."""

import re
from typing import Any

from graphcredit.collector.importers.messages.roles import CONTENTS, ROLES
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    TOOL,
    Message,
    PlainMessages,
    ToolCall,
    Turn,
    Turns,
    made,
)
from graphcredit.collector.importers.messages.values import canonical_text
from graphcredit.collector.importers.messages.worded_calls import has_words
from graphcredit.store.chat import CHAT_ROLES
from graphcredit.store.schema import STEP_COLUMNS

_SAID = frozenset({"role", "content", "tool_calls", "reasoning_content"})
"""Fields of an answer."""

_HEARD = frozenset({"role", "content", "tool_call_id", "name"})
"""Fields of a message that the policy sees."""

REASONING = (
    *("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks"),
    "tool_plan",
)
WITH_RESULTS = "toolInvocations"
"""Vercel's calls, which have their results themselves; a text beside them follows them."""

CALLS = (
    *("tool_calls", "toolCalls", "function_call", "functionCall", "tool_call"),
    "invalid_tool_calls",
)
"""Fields of an answer that have reasoning, calls, or calls with their results."""

_TELLING = frozenset(
    {
        *("reward", "score", "weight", "loss", "items"),
        *(*REASONING, *CALLS, WITH_RESULTS, *CONTENTS),
        *(name for column in STEP_COLUMNS for name in (column.name, *column.in_logs)),
    }
)
"""Fields whose numbers and flags readers take; those of others only stand in a message."""

_TIMES = frozenset({"timestamp", "created_at", "created"})
"""Fields whose texts only stand in a message, too."""

_CALL, _FUNCTION = frozenset({"id", "type", "function"}), frozenset({"name", "arguments"})

LONGEST_NAME = 200
"""Characters of a text that identifies or classifies, and says nothing."""

_THINKING = re.compile(r"\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)


def plain_messages(items: list[Any]) -> PlainMessages | None:
    """Return the messages of a list, if they are plain and each answer is one; else None."""
    messages: list[Message] = []
    turns: list[Turn] = []
    seen: list[Message] = []
    num_characters = 0
    for item in items:
        message = plain_message(item, is_context=False) if type(item) is dict else None
        if message is None or message.plain is not message.source or has_words(message):
            return None
        if message.text != message.source.get("content", ""):
            return None
        messages.append(message)
        for text in (message.text, message.thought):
            if text and not text.isspace():
                num_characters += len(text)
        if message.role != ASSISTANT:
            seen.append(message)
            continue
        if turns and not seen:
            return None
        turns.append(Turn(tuple(seen), message))
        seen = []
        for call in message.tool_calls:
            num_characters += len(call.name) + (0 if call.logged.isspace() else len(call.logged))
    plain = PlainMessages(messages)
    plain.turns = Turns(turns=tuple(turns), after=tuple(seen))
    plain.items, plain.num_characters = items, num_characters
    return plain


def plain_message(logged: dict[str, Any], *, is_context: bool) -> Message | None:
    """Return a message of texts and calls alone; None if it may have more."""
    if None in logged.values():
        logged = {name: value for name, value in logged.items() if value is not None}
    role, content = logged.get("role"), logged.get("content", "")
    role = ROLES.get(role) if type(role) is str else None
    if role is None or type(content) is not str:
        return None
    if role == ASSISTANT:
        return _answer(logged, content, is_context=is_context)
    if "content" not in logged or not (logged.keys() <= _HEARD or _are_aside(logged, _HEARD)):
        return None
    is_plain = "name" not in logged and _is_name(logged.get("tool_call_id", ""))
    return made(
        role=role,
        text=without_id(content) if role == TOOL else content,
        is_context=is_context,
        source=logged,
        plain=logged if is_plain and logged["role"] in CHAT_ROLES else None,
    )


def _answer(logged: dict[str, Any], content: str, *, is_context: bool) -> Message | None:
    apart, given = logged.get("reasoning_content", ""), logged.get("tool_calls", ())
    is_known = logged["role"] == ASSISTANT and (logged.keys() <= _SAID or _are_aside(logged, _SAID))
    if not is_known or type(apart) is not str or not (given == () or type(given) is list):
        return None
    calls: list[ToolCall] = []
    is_plain = True
    for call in given:
        function: Any = call.get("function") if type(call) is dict else None
        if type(function) is not dict:
            return None
        name, arguments, call_id = function.get("name"), function.get("arguments"), call.get("id")
        if type(name) is not str or arguments is None:
            return None
        known = call_id if type(call_id) is str else None
        calls.append(ToolCall(name, canonical_text(arguments) or "{}", known, arguments))
        is_plain = (
            is_plain
            and type(arguments) is str
            and function.keys() <= _FUNCTION
            and call.keys() <= _CALL
            and _is_name(call_id)
            and _is_name(call.get("type"))
        )
    inline, text = split_thinking(content)
    return made(
        role=ASSISTANT,
        text=text,
        thought="\n\n".join((apart, inline)) if apart and inline else apart or inline,
        tool_calls=tuple(calls),
        said=content if inline else "",
        is_context=is_context,
        source=logged,
        plain=logged if is_plain and not inline else None,
    )


def _are_aside(logged: dict[str, Any], known: frozenset[str]) -> bool:
    """Return whether all fields but the known ones are times, numbers or empty, and tell nothing.

    The content, or the calls, must be there: a message of such fields alone is of another shape.
    """
    if not (logged.get("content") or logged.get("tool_calls")):
        return False
    for name in logged.keys() - known:
        value = logged[name]
        is_silent = type(value) in _NUMBERS or value in ([], {})
        if name in _TELLING or not (is_silent or (name in _TIMES and _is_name(value))):
            return False
    return True


_NUMBERS = (bool, int, float)


def _is_name(value: object) -> bool:
    return type(value) is str and len(value) <= LONGEST_NAME


def split_thinking(text: str) -> tuple[str, str]:
    """Return the reasoning in <think> tags that a text begins with, and the rest."""
    match = _THINKING.match(text) if text and text[0] in "< \n\t\r" else None
    return (match[1].strip(), text[match.end() :]) if match else ("", text)


def without_id(result: str) -> str:
    """Return a result without the id that smolagents puts before it."""
    return result.partition("\n")[2] if result.startswith("Call id: ") else result
