"""Read the messages of an imported log, which stand in `extra` as the log has them.

Logs differ in the names of their fields. Of each message the text is shown; one whose text is not
found is shown as JSON, so that none is missing.
"""

from collections.abc import Mapping
from typing import Any, Literal

from graphcredit.store.files.parse import parse_json
from graphcredit.viewer.chat.texts import Part, as_json, call_part, code_part, parts_of

Kind = Literal["system", "user", "agent", "result"]

_ROLES: dict[str, Kind] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "ai": "agent",
    "gpt": "agent",
    "model": "agent",
    "function_call": "agent",
    "tool": "result",
    "function": "result",
    "observation": "result",
    "function_call_output": "result",
    "environment": "result",
    "ipython": "result",
}
_TEXTS = ("content", "output", "text", "value")
_TOO_DEEP = "(nested too deeply to be shown: `extra` in SQL has it)"
_NOT_UNDERSTOOD = "a message of the log, as JSON"


def kind_of(message: Any) -> Kind:
    """Return who speaks in a message; a user where the log does not say."""
    if not isinstance(message, Mapping):
        return "user"
    for name in ("role", "from", "type"):
        if isinstance(said := message.get(name), str) and said in _ROLES:
            return _ROLES[said]
    return "result" if "observation" in message else "user"


def tool_of(message: Any) -> str | None:
    """Return the tool whose result a message is, where the log names it."""
    name = message.get("name") if isinstance(message, Mapping) else None
    return name if isinstance(name, str) and name else None


def parts_of_message(message: Any) -> tuple[Part, ...]:
    """Return the text of a message, and the tool calls in it."""
    try:
        return _parts(message)
    except RecursionError:
        return (Part(text=_TOO_DEEP),)


def _parts(message: Any) -> tuple[Part, ...]:
    text = _text_of(message)
    calls = _calls_of(message)
    if text is None and not calls:
        return (code_part(as_json(message), _NOT_UNDERSTOOD),)
    spoken = parts_of(text or "")
    return (*spoken, *calls)


def _text_of(message: Any) -> str | None:
    """Return the text of a message or of a part of one; None if it is not found."""
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        texts = [_text_of(part) for part in message]
        known = [text for text in texts if text is not None]
        return "\n".join(known) if len(known) == len(texts) else None
    if not isinstance(message, Mapping):
        return None
    for name in _TEXTS:
        if message.get(name) is not None:
            return _text_of(message[name])
    return None


def _calls_of(message: Any) -> list[Part]:
    """Return the tool calls of an assistant's message in the prompt."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    return [_call(call) for call in calls] if isinstance(calls, list) else []


def _call(call: Any) -> Part:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments)
        except ValueError:
            return code_part(str(arguments), f"Calls {name}")
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        return code_part(as_json(call), "Calls a tool")
    return call_part(name, arguments)
