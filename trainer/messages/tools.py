"""Definitions of tools as OpenAI has them, which chat templates take, from those of any dialect."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, cast

from graphcredit.store.chat import Chat
from graphcredit.store.files.parse import parse_json

_LISTS = (
    *("tools", "functions", "tool_definitions", "tools_schema", "oai_tools"),
    *("functionDeclarations", "function_declarations"),
)
_AROUND = ("toolConfig", "tool_config", "request", "config")
"""Objects beside the messages that may have the definitions: Bedrock's, and those of requests."""

_WITHIN = ("function", "toolSpec", "tool_spec")
_SCHEMAS = (
    *("parameters", "input_schema", "inputSchema", "parametersJsonSchema"),
    *("parameters_json_schema", "args_schema"),
)
_EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}}
_GEMINI = ("OBJECT", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "NULL")


PLAIN_TOOL = {"type": "function", "function": {"name": "probe", "parameters": _EMPTY}}
"""A tool without a description, as a template may not take it."""

NO_DESCRIPTION = "no tool without a description: it is empty"


def described(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition that has a description, if an empty one."""
    function = _mapping(tool.get("function"))
    return {**tool, "function": {**function, "description": function.get("description") or ""}}


def tools_of(log: object) -> Chat | None:
    """Return the definitions of tools that a record has beside its messages; None without any."""
    return _within(_mapping(log)) or None


def _within(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the definitions of the first field that has some."""
    lists = (list(_listed(fields[name])) for name in _LISTS if name in fields)
    around = (_within(_mapping(fields[name])) for name in _AROUND if name in fields)
    return next(filter(None, chain(lists, around)), [])


def _listed(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return
    for item in cast("list[Any]", value) if isinstance(value, list) else []:
        tool = _mapping(item)
        inner = next((name for name in _LISTS if isinstance(tool.get(name), list)), None)
        if inner is not None:  # Gemini has several in one
            yield from _listed(tool[inner])
        elif tool:
            yield _openai(tool)


def _openai(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition in OpenAI's shape; one without a name as it is."""
    if isinstance(tool.get("function"), Mapping):
        return dict(tool)
    inner = next((_mapping(tool[name]) for name in _WITHIN if name in tool), tool)
    if "name" not in inner:
        return dict(tool)
    function = {name: inner[name] for name in ("name", "description") if name in inner}
    schema = next((inner[name] for name in _SCHEMAS if inner.get(name) is not None), _EMPTY)
    schema = _mapping(schema).get("json", schema)  # Bedrock's is in an object of its own
    return {"type": "function", "function": {**function, "parameters": _lower(schema)}}


def _lower(schema: Any) -> Any:
    """Return a schema with the types of JSON Schema in place of Gemini's, which are in capitals."""
    if isinstance(schema, list):
        return [_lower(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    fields = cast("Mapping[str, Any]", schema)
    lowered = {name: _lower(value) for name, value in fields.items()}
    kind = fields.get("type")
    return {**lowered, "type": kind.lower()} if kind in _GEMINI else lowered


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
