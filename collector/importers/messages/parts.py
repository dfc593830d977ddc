"""Read the parts of a message by their shape, whoever wrote them.

A name with arguments is a call, an id with an output is a result. So one reader does for OpenAI,
Anthropic, Gemini, Bedrock, Vercel, OpenTelemetry, LangChain and whoever comes next.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from graphcredit.collector.importers.messages.image_parts import is_image, single_images
from graphcredit.collector.importers.messages.rollout import ToolCall
from graphcredit.collector.importers.messages.shapes import (
    ERRORS,
    IDS,
    KINDS,
    RESULTS,
    is_call,
    is_result,
    is_thought,
    kind_of,
    tool_call,
)
from graphcredit.collector.importers.messages.values import (
    canonical,
    fields_of,
    first_of,
    json_text,
    without,
)

TEXT, THOUGHT, CALL, RESULT, RULES = "text", "thought", "call", "result", "rules"
STEP = "step"
"""Where the next answer of a message begins; results before it are those of its calls together."""


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
    said: str = ""
    """Its text with the reasoning that was taken out of it."""


_RESULTS_WITHIN = ("output", "outputs", "result", "results", "error", "errorText")
"""Fields of a call that have its result, as of a tool of the model's server."""

_TEXTS = ("text", "refusal", "content", "transcript", "parts")
_REASONING = ("reasoning", "thinking", "text", "content", "summary", "reasoningText")
_BESIDE = frozenset(
    {"type", "status", "isError", "is_error", "structuredContent", "_meta", "meta", "content"}
)
"""Fields of a result of MCP."""


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
    kind, state = kind_of(part), fields_of(part.get("state"))
    if kind == "tool" and "input" in state:  # opencode
        part, kind = {**part, **state, "type": "tool_call"}, "tool_call"
    if kind in ("step_start", "step_finish"):
        yield Piece(STEP, part=part)
    elif kind == "system_prompt":
        yield Piece(RULES, result_text(part.get("content")), part=part)
    elif is_image(part):
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
        result = first_of(part, (*RESULTS, *ERRORS))
        yield Piece(RESULT, result_text(result), images=_images(result), part=part)
    else:
        yield from _others(part)


def _others(part: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield a text, what the one object within a part is, or a mark."""
    is_data = kind_of(part) in ("document", "text")
    for name in (*_TEXTS, "data", "value") if is_data else _TEXTS:
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
    if set(part) == {"json"}:
        yield Piece(TEXT, json_text(part["json"]), part=part)
    elif inner is not None:
        yield from _pieces_of_part(inner)
    elif part.get("id") is not None and first_of(part, RESULTS) is not None:
        yield Piece(RESULT, result_text(first_of(part, RESULTS)), part=part)
    elif set(part) - {*KINDS, *IDS}:
        yield Piece(TEXT, _mark(part), part=part, is_unread=True)


def _within(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the one object in a part, as in `{"functionCall": {...}}`; it inherits name and id."""
    objects = [(name, value) for name, value in part.items() if isinstance(value, Mapping)]
    if len(objects) != 1:
        return None
    name, value = objects[0]
    ids = {key: part[key] for key in IDS if part.get(key) is not None}
    kind = {} if first_of(value, KINDS) is not None else {"type": name}
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
    digest = hashlib.sha256(canonical(without(part, IDS)).encode("utf-8", "surrogatepass"))
    return f"[{first_of(part, KINDS) or 'part'} {digest.hexdigest()[:12]}]"


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
    if "value" in fields and fields.keys() <= {*KINDS, "value", "providerOptions"}:
        return result_text(fields["value"])
    if isinstance(fields.get("content"), list) and fields.keys() <= _BESIDE:
        return result_text(fields["content"])
    if len(fields) == 1:
        ((name, only),) = fields.items()
        if name == "json" or (isinstance(only, str) and name in (*RESULTS, *ERRORS)):
            return result_text(only)
    return json_text(_public(value))


def _public(value: object) -> object:
    """Return a value without what only a model's server can read, which differs each time."""
    if isinstance(value, list):
        return [_public(item) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value).items()
        return {k: _public(v) for k, v in fields if not str(k).startswith("encrypted_")}
    return value


def _are_parts(value: object) -> bool:
    """Return whether a value is a part of a content, or a list of them, and no data of a tool."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_part, cast("list[object]", value)))
    return _is_part(value)


def _is_part(value: object) -> bool:
    fields = fields_of(value)
    if isinstance(fields.get("text"), str):
        return len(fields) == 1 or first_of(fields, KINDS) is not None
    inner = fields.get("json") if len(fields) == 1 else None
    return is_image(value) or inner is not None


def _images(value: object) -> tuple[Mapping[str, Any], ...]:
    if isinstance(value, list):
        return tuple(image for item in cast("list[object]", value) for image in _images(item))
    if is_image(value):
        return tuple(single_images(fields_of(value)))
    inner = first_of(fields_of(value), ("content", "value"))
    return _images(inner) if isinstance(inner, list | Mapping) else ()


def text_of_content(content: object) -> str:
    """Return the text of a message's content: text, a list of parts, or data.

    An image, or another part without text, becomes a mark with a digest, so that two are two.
    Reasoning and calls are read elsewhere.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        pieces = pieces_of(content)
        return "\n".join(p.text for p in pieces if p.text and p.kind not in (THOUGHT, CALL))
    return result_text(content)


def images_of(content: object) -> tuple[Mapping[str, Any], ...]:
    """Return the images of a message's content in their order, those in results of tools too."""
    if content is None or isinstance(content, str):
        return ()
    return tuple(image for piece in pieces_of(content) for image in piece.images)
