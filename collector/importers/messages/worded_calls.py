"""Calls and results that a log has in its texts, in the notation of Hermes and Qwen."""

import re
from dataclasses import replace

from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    TOOL,
    USER,
    Message,
    ToolCall,
)
from graphcredit.collector.importers.messages.shapes import tool_call
from graphcredit.collector.importers.messages.values import (
    RecordError,
    canonical,
    fields_of,
    parse_json,
)

OPEN, _OPEN_FUNCTION = "<tool_call>", "<function="
"""What a call in a text begins with."""

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_BARE = re.compile(r"(<function=[^>\s]+>.*?</function>)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>\s*", re.DOTALL)


def opened_words(message: Message) -> Message:
    """Return a message with the calls of its text as calls, and without the tags of a result.

    A text with a call that cannot be read stays as it is.
    """
    if not has_words(message):
        return message
    if message.role == ASSISTANT:
        return _with_calls(message)
    if _RESULT.sub("", message.text):
        return message
    return replace(message, role=TOOL, text="\n\n".join(_RESULT.findall(message.text)))


def has_words(message: Message) -> bool:
    """Return whether a text may have a call, or is in the tags of a result."""
    if message.role == ASSISTANT:
        return OPEN in message.text or _OPEN_FUNCTION in message.text
    return message.role in (TOOL, USER) and message.text.startswith("<tool_response>")


def _with_calls(message: Message) -> Message:
    if message.tool_calls:
        return message
    marked = _CALL if OPEN in message.text else _BARE
    calls = [_call(text) for text in marked.findall(message.text)]
    sound = tuple(call for call in calls if call is not None)
    if len(sound) < len(calls) or not calls:
        return message
    words = marked.sub("", message.text).strip()
    said = message.said or message.text
    return replace(message, text=words, tool_calls=sound, calls_text=message.text, said=said)


def _call(text: str) -> ToolCall | None:
    """Return a call: an object with a name and arguments, or a function with parameters in tags."""
    if function := _FUNCTION.fullmatch(text):
        values = dict(_PARAMETER.findall(function[2]))
        return ToolCall(function[1], canonical(values), None, values)
    try:
        return tool_call(fields_of(parse_json(text)), "a call")
    except RecordError:
        return None
