"""What a part of a message looks like: a call, a result, reasoning; and what a call says."""

import re
from collections.abc import Mapping
from typing import Any, cast

from graphcredit.collector.importers.messages.rollout import ToolCall
from graphcredit.collector.importers.messages.values import (
    RecordError,
    canonical_text,
    first_of,
    parse_json,
    short,
    snake_case,
)

KINDS = ("type", "part_kind", "kind", "block_type")
_NAMES = ("name", "tool_name", "toolName", "function_name", "function", "tool")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params", "tool_input", "toolInput")
_UNNAMED = ("action", "code", "queries", "query", "operation")
"""Fields with the arguments of a call whose tool only its type names."""

_CALL_IDS = (
    *("tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "call_id", "callId", "callID"),
)
IDS = (*_CALL_IDS, "id")
RESULTS = ("output", "outputs", "result", "results", "response", "content")
ERRORS = ("error", "errorText")
_IS_CALL = re.compile(r"(^|_)(call|use|invocation)$|^executable_code$")
_IS_RESULT = re.compile(r"(result|response|output|outputs|return)$")
_IS_THOUGHT = re.compile(r"thinking|reasoning|^thought(_event)?$")


def kind_of(part: Mapping[str, Any]) -> str:
    """Return what a part calls itself, such as `tool_call`; empty if it does not say."""
    kind = first_of(part, KINDS)
    return snake_case(kind) if isinstance(kind, str) else ""


def is_call(part: Mapping[str, Any]) -> bool:
    """Return whether a part is a call of a tool."""
    kind = kind_of(part)
    if _IS_RESULT.search(kind) or _IS_THOUGHT.search(kind):
        return False
    if _IS_CALL.search(kind):
        return first_of(part, (*_NAMES, *_ARGUMENTS, *_UNNAMED)) is not None
    if kind.startswith("tool_") and "toolCallId" in part:  # Vercel: `tool-weather`
        return True
    return isinstance(first_of(part, _NAMES), str) and first_of(part, _ARGUMENTS) is not None


def is_thought(part: Mapping[str, Any]) -> bool:
    """Return whether a part is reasoning."""
    return bool(_IS_THOUGHT.search(kind_of(part))) or part.get("thought") is True


def is_result(part: Mapping[str, Any]) -> bool:
    """Return whether a part is the result of a call."""
    is_named = _IS_RESULT.search(kind_of(part)) or first_of(part, _CALL_IDS) is not None
    return bool(is_named) and first_of(part, (*RESULTS, *ERRORS)) is not None


def tool_call(value: object, what: str) -> ToolCall:
    """Return a tool call; verifiers' older logs have it as JSON text."""
    call: object = parse_json(value) if isinstance(value, str) else value
    if not isinstance(call, Mapping):
        raise RecordError(f"{what}: a call must be a JSON object: got {short(call)}")
    outer = cast("Mapping[str, Any]", call)
    inner = first_of(outer, ("function", "custom"))
    fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else outer
    name = first_of(fields, _NAMES)
    if not isinstance(name, str):
        kind = first_of(fields, KINDS)
        if not isinstance(kind, str) or kind == "function":
            raise RecordError(f"{what}: a call must have the name of its tool: got {short(call)}")
        name = kind.removesuffix("_call").removeprefix("tool-")
    logged = first_of(fields, (*_ARGUMENTS, *_UNNAMED))
    call_id = first_of(outer, IDS)
    known = call_id if isinstance(call_id, str) else None
    return ToolCall(name, canonical_text(logged) or "{}", known, logged)
