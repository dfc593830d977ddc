"""Attributes of spans: dotted names to objects, and the messages that conventions put in them."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from graphcredit.collector.importers.messages.values import (
    field_at,
    fields_of,
    first_of,
    items_of,
    parse_json,
)

_WRAPPERS = ("message", "tool_call", "message_content")
"""Names with which OpenInference wraps each item of a list."""

_INPUTS = (
    *("gen_ai.input.messages", "llm.input_messages", "ai.prompt.messages", "gen_ai.prompt"),
    "gen_ai.request.messages",
    *("pydantic_ai.all_messages", "all_messages_events", "request_data", "ai.prompt"),
    *("langfuse.observation.input", "mlflow.spanInputs", "traceloop.entity.input", "input.value"),
)
_OUTPUTS = (
    *("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "response_data"),
    *("langfuse.observation.output", "mlflow.spanOutputs", "traceloop.entity.output"),
    *("output.value",),
)
_SYSTEM = "gen_ai.system_instructions"


def attributes_of(value: object) -> dict[str, Any]:
    """Return attributes as nested objects: a list of keys and values, or an object of any depth."""
    pairs = [fields_of(item) for item in items_of(value)]
    keyed = {str(pair.get("key")): _any_value(pair.get("value")) for pair in pairs}
    return cast("dict[str, Any]", _with_lists(_nested({**keyed, **fields_of(value)}.items())))


def _any_value(value: object) -> Any:
    """Return a value of OTLP, which names its type, such as `{"stringValue": "a"}`."""
    (kind, inner), *_ = fields_of(value).items() or [("", None)]
    match kind.removesuffix("Value").removesuffix("_value"):
        case "array":
            return [_any_value(item) for item in fields_of(inner).get("values") or []]
        case "kvlist":
            return attributes_of(fields_of(inner).get("values") or [])
        case "int" if isinstance(inner, str):
            return int(inner)
        case _:
            return inner


def _nested(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of dotted names as objects within objects."""
    whole: dict[str, Any] = {}
    for name, value in items:
        *path, last = name.split(".")
        inner = whole
        for part in path:
            below = inner.get(part)
            if not isinstance(below, dict):
                below = inner[part] = {} if below is None else {"": below}
            inner = cast("dict[str, Any]", below)
        if isinstance(value, Mapping):
            value = _nested(cast("Mapping[str, Any]", value).items())
        below = inner.get(last)
        if not isinstance(below, dict):
            inner[last] = value
        elif isinstance(value, dict):
            below.update(cast("dict[str, Any]", value))
        else:
            below[""] = value
    return whole


def _with_lists(value: Any) -> Any:
    """Return a value whose objects of numbered fields are lists."""
    if isinstance(value, list):
        return list(map(_with_lists, items_of(value)))
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    if fields and all(name.isdecimal() for name in fields):
        return [_with_lists(fields[name]) for name in sorted(fields, key=int)]
    return {name: _with_lists(item) for name, item in fields.items()}


def input_of(attributes: dict[str, Any], events: Iterable[Mapping[str, Any]]) -> Any:
    """Take what attributes or events say of a span's input; None if nothing."""
    given = _first(attributes, _INPUTS)
    if given is None:
        given = [_of_event(event) for event in events if _role_of(event) not in ("", "choice")]
    system = _taken(attributes, _SYSTEM)
    if not given or system is None:
        return given or None
    return {"messages": given, "system": system}


def output_of(attributes: dict[str, Any], events: Iterable[Mapping[str, Any]]) -> Any:
    """Take what attributes or events say of a span's output; None if nothing."""
    given = _first(attributes, _OUTPUTS)
    if given is None:
        said = {**fields_of(field_at(attributes, "gen_ai.response"))}
        said |= fields_of(field_at(attributes, "ai.response"))
        calls = _parsed(first_of(said, ("toolCalls", "tool_calls")))
        text = [{"type": "text", "text": said["text"]}] if said.get("text") else []
        given = [{"role": "assistant", "content": [*text, *calls]}] if calls else text
    return given or [_of_event(event) for event in events if _role_of(event) == "choice"] or None


def _first(attributes: dict[str, Any], names: Iterable[str]) -> Any:
    for name in names:
        value = _parsed(_taken(attributes, name))
        if value not in (None, "", [], {}):
            return _unwrapped(value) if name.startswith(("llm.", "gen_ai.")) else value
    return None


def _taken(attributes: dict[str, Any], path: str) -> Any:
    """Return an attribute, and take it away."""
    *above, last = path.split(".")
    inner: Any = attributes
    for name in above:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return cast("dict[str, Any]", inner).pop(last, None) if isinstance(inner, dict) else None


def _unwrapped(value: Any) -> Any:
    """Return messages without the wrappers of OpenInference; their content may be JSON text."""
    if isinstance(value, list):
        return list(map(_unwrapped, items_of(value)))
    if not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[str, Any]", value)
    if any("." in name for name in fields):
        fields = _nested(fields.items())
    if len(fields) == 1 and next(iter(fields)) in _WRAPPERS:
        return _unwrapped(next(iter(fields.values())))
    if "role" not in fields:
        return {name: _unwrapped(item) for name, item in fields.items()}
    inner = {name: item if name == "parts" else _unwrapped(item) for name, item in fields.items()}
    content = inner.pop("contents", None) or _parsed(inner.get("content"))
    return {**inner, "content": content} if isinstance(content, list) else inner


_EVENT_ROLES = {
    **{f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")},
    "gen_ai.choice": "choice",
    "gen_ai.content.prompt": "user",
    "gen_ai.content.completion": "choice",
}


def is_read(event: Mapping[str, Any]) -> bool:
    """Return whether an event is a message, or an evaluation."""
    return bool(_role_of(event)) or str(event.get("name")).startswith("gen_ai.")


def _role_of(event: Mapping[str, Any]) -> str:
    """Return who says what an event has; empty if it is no message."""
    name = field_at(event, "attributes.event.name") or event.get("name")
    return _EVENT_ROLES.get(str(name), "")


def _of_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of an event, in its body or its attributes."""
    role = _role_of(event).replace("choice", "assistant")
    said = {**fields_of(event.get("attributes")), **fields_of(event.get("body"))}
    said = {name: _parsed(item) for name, item in said.items()}
    for name in ("gen_ai.prompt", "gen_ai.completion"):
        inner = field_at(said, name)
        if inner is not None:
            return {"role": role, "content": inner}
    message = said.pop("message", {})  # it, its parts, or its text
    inner = message if isinstance(message, Mapping) else {"content": message}
    return {"role": role, **said, **cast("Mapping[str, Any]", inner)}


def _parsed(value: Any) -> Any:
    parsed = parse_json(value) if isinstance(value, str) else None
    return value if parsed is None else parsed
