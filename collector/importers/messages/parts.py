"""Read the parts of a message by their shape, whoever wrote them.

A name with arguments is a call, an id with an output is a result. So one reader does for OpenAI,
Anthropic, Gemini, Bedrock, Vercel, OpenTelemetry, LangChain and whoever comes next.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from graphcredit.collector.importers.messages.image_parts import is_image, single_images
from graphcredit.collector.importers.messages.rollout import ToolCall
from graphcredit.collector.importers.messages.values import (
    RecordError,
    canonical,
    canonical_text,
    fields_of,
    first_of,
    json_text,
    parse_json,
    short,
    without,
)

TEXT, THOUGHT, CALL, RESULT = "text", "thought", "call", "result"


class Piece(NamedTuple):
    """What a part of a message is."""

    kind: str
    text: str = ""
    call: ToolCall | None = None
    images: tuple[Mapping[str, Any], ...] = ()
    part: Any = None
    """It as the log has it."""
    is_unread: bool = False
    """Whether its text is a mark, since it has none."""


_KINDS = ("type", "part_kind", "kind", "block_type")
_NAMES = ("name", "tool_name", "toolName", "function_name", "function", "tool")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params", "tool_input", "toolInput")
_UNNAMED = ("action", "code", "queries", "query", "operation")
"""Fields with the arguments of a call whose tool only its type names."""

_CALL_IDS = ("tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "call_id", "callId")
_IDS = (*_CALL_IDS, "id")
_RESULTS = ("output", "outputs", "result", "results", "response", "content")
_RESULTS_WITHIN = ("output", "outputs", "result", "results", "error", "errorText")
"""Fields of a call that have its result, as of a tool of the model's server."""

_ERRORS = ("error", "errorText")
_TEXTS = ("text", "refusal", "content", "transcript")
_REASONING = ("reasoning", "thinking", "text", "content", "summary", "reasoningText")
_BESIDE = frozenset(
    {"type", "status", "isError", "is_error", "structuredContent", "_meta", "meta", "content"}
)
"""Fields of a result of MCP."""

_IS_CALL = re.compile(r"(^|_)(call|use|invocation)$|^executable_code$")
_IS_RESULT = re.compile(r"(result|response|output|outputs|return)$")
_IS_THOUGHT = re.compile(r"thinking|reasoning|^thought$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")


@lru_cache(maxsize=512)
def _snake(kind: str) -> str:
    return _WORDS.sub("_", kind).lower()


def kind_of(part: Mapping[str, Any]) -> str:
    """Return what a part calls itself, such as `tool_call`; empty if it does not say."""
    kind = first_of(part, _KINDS)
    return _snake(kind) if isinstance(kind, str) else ""


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
    return bool(is_named) and first_of(part, (*_RESULTS, *_ERRORS)) is not None


def pieces_of(content: object) -> Iterator[Piece]:
    """Yield what a content has, in order."""
    if isinstance(content, list):
        for part in cast("list[object]", content):
            yield from pieces_of(part)
    elif isinstance(content, Mapping):
        yield from _pieces_of_part(cast("Mapping[str, Any]", content))
    elif content is not None:
        text = content if isinstance(content, str) else canonical(content)
        yield Piece(TEXT, text, part=content)


def _pieces_of_part(part: Mapping[str, Any]) -> Iterator[Piece]:
    if is_image(part):
        for image in single_images(part):
            yield Piece(TEXT, _mark(image), images=(image,), part=part)
    elif is_thought(part):
        yield Piece(THOUGHT, _reasoning(part), part=part)
    elif is_call(part):
        yield Piece(CALL, call=tool_call(part, "a part"), part=part)
        within = [part[name] for name in _RESULTS_WITHIN if part.get(name) not in (None, [], "")]
        if within:
            text = "\n\n".join(map(result_text, within))
            yield Piece(RESULT, text, images=_images(within), part=part)
    elif is_result(part):
        result = first_of(part, (*_RESULTS, *_ERRORS))
        yield Piece(RESULT, result_text(result), images=_images(result), part=part)
    else:
        yield from _others(part)


def _others(part: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield a text, what the one object within a part is, or a mark."""
    for name in _TEXTS:
        text = part.get(name)
        if isinstance(text, Mapping):
            text = cast("Mapping[str, Any]", text).get("value")
        if isinstance(text, str):
            yield Piece(TEXT, text, part=part)
            return
        if isinstance(text, list):
            yield from pieces_of(cast("list[object]", text))
            return
    inner = _within(part)
    if inner is not None:
        yield from _pieces_of_part(inner)
    elif part.get("id") is not None and first_of(part, _RESULTS) is not None:
        yield Piece(RESULT, result_text(first_of(part, _RESULTS)), part=part)
    elif set(part) - {*_KINDS, *_IDS}:
        yield Piece(TEXT, _mark(part), part=part, is_unread=True)


def _within(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the one object in a part, as in `{"functionCall": {...}}`; it inherits name and id."""
    objects = [(name, value) for name, value in part.items() if isinstance(value, Mapping)]
    if len(objects) != 1:
        return None
    name, value = objects[0]
    ids = {key: part[key] for key in _IDS if part.get(key) is not None}
    kind = {} if first_of(value, _KINDS) is not None else {"type": name}
    return {**kind, **ids, **cast("Mapping[str, Any]", value)}


def _reasoning(part: Mapping[str, Any]) -> str:
    """Return the text of reasoning; there is none where it is encrypted."""
    said = next((part[name] for name in _REASONING if part.get(name)), None)
    if said is None:
        inner = _within(part)
        return "" if inner is None else _reasoning(inner)
    return said if isinstance(said, str) else "\n".join(p.text for p in pieces_of(said) if p.text)


def _mark(part: Mapping[str, Any]) -> str:
    """Return a text for a part that has none; equal parts have equal ones, whatever their ids."""
    digest = hashlib.sha256(canonical(without(part, _IDS)).encode("utf-8", "surrogatepass"))
    return f"[{first_of(part, _KINDS) or 'part'} {digest.hexdigest()[:12]}]"


def result_text(value: object) -> str:
    """Return the text of a result: text, parts, or data as JSON in its order."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if _are_parts(value):
        pieces = pieces_of(value)
        return "\n".join(piece.text for piece in pieces if piece.text)
    fields = fields_of(value)
    if "value" in fields and fields.keys() <= {*_KINDS, "value", "providerOptions"}:
        return result_text(fields["value"])
    if isinstance(fields.get("content"), list) and fields.keys() <= _BESIDE:
        return result_text(fields["content"])
    if len(fields) == 1:
        ((name, only),) = fields.items()
        if name == "json" or (isinstance(only, str) and name in (*_RESULTS, *_ERRORS)):
            return result_text(only)
    secret = [name for name in fields if name.startswith("encrypted")]
    return json_text(without(fields, secret) if secret else value)


def _are_parts(value: object) -> bool:
    """Return whether a value is a part of a content, or a list of them, and no data of a tool."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_part, cast("list[object]", value)))
    return _is_part(value)


def _is_part(value: object) -> bool:
    fields = fields_of(value)
    if isinstance(fields.get("text"), str):
        return len(fields) == 1 or first_of(fields, _KINDS) is not None
    inner = fields.get("json") if len(fields) == 1 else None
    return is_image(value) or inner is not None


def _images(value: object) -> tuple[Mapping[str, Any], ...]:
    if isinstance(value, list):
        return tuple(image for item in cast("list[object]", value) for image in _images(item))
    if is_image(value):
        return tuple(single_images(fields_of(value)))
    inner = first_of(fields_of(value), ("content", "value"))
    return _images(inner) if isinstance(inner, list | Mapping) else ()


def tool_call(value: object, what: str) -> ToolCall:
    """Return a tool call; verifiers' older logs have it as JSON text.

    Raises:
        RecordError: It is no tool call.
    """
    call: object = parse_json(value) if isinstance(value, str) else value
    if not isinstance(call, Mapping):
        raise RecordError(f"{what}: a call must be a JSON object: got {short(call)}")
    outer = cast("Mapping[str, Any]", call)
    inner = first_of(outer, ("function", "custom"))
    fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else outer
    name = first_of(fields, _NAMES)
    if not isinstance(name, str):
        kind = first_of(fields, _KINDS)
        if not isinstance(kind, str) or kind == "function":
            raise RecordError(f"{what}: a call must have the name of its tool: got {short(call)}")
        name = kind.removesuffix("_call").removeprefix("tool-")
    arguments = canonical_text(first_of(fields, (*_ARGUMENTS, *_UNNAMED))) or "{}"
    call_id = first_of(outer, _IDS)
    return ToolCall(name, arguments, call_id if isinstance(call_id, str) else None)
