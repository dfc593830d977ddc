"""Fields of JSON objects in a text: found by their path, and taken out of it."""

import json
import re
from typing import Any

from graphcredit.store.files.parse import json_in

_START = re.compile(r"\{\s*[\"}]|\[\s*[\"{\d\[]")


def without_fields(text: str, path: re.Pattern[str]) -> tuple[str, list[str]]:
    """Return a text without the fields of a path, and the values that they had, as JSON.

    All JSON of the text is written anew, in one way: nothing shows where a field was.

    Args:
        text: Any; JSON objects and lists are looked for everywhere but in strings of others.
        path: From `compile_path`; it must match all of a field's path.
    """
    parts: list[str] = []
    values: list[str] = []
    done = 0
    for start, stop, value in json_in(text, _START):
        parts += [text[done:start], json.dumps(_without(value, "", path, values))]
        done = stop
    return "".join([*parts, text[done:]]), values


def _without(value: Any, address: str, path: re.Pattern[str], values: list[str]) -> Any:
    """Return a value without the fields of a path; theirs are appended to `values`."""
    if isinstance(value, list):
        return [_without(item, f"{address}[]", path, values) for item in value]
    if not isinstance(value, dict):
        return value
    left: dict[str, Any] = {}
    for name, member in value.items():
        inner = f"{address}.{name}" if address else name
        if path.fullmatch(inner):
            values.append(json.dumps(member, sort_keys=True))
        else:
            left[name] = _without(member, inner, path, values)
    return left
