"""Whether a message of a log reports an error: by its fields, or by how its text begins."""

import re
from collections.abc import Mapping
from typing import Any

_FLAGS = ("is_error", "isError")
_CODES = ("exit_code", "returncode", "return_code", "exitCode")
_INSIDE = ("content", "extra", "metadata", "additional_kwargs")
"""Fields that may have such fields in turn."""

_TEXT = re.compile(
    r"\s*(?:(?:[A-Z]\w*)?(?:Error|Exception)\b|error:|ERROR\b|Traceback \(most recent call last\)"
    r"|<returncode>(?!0<)|<tool_use_error>|<error>)"
)


def is_error(message: Any, depth: int = 3) -> bool:
    """Return whether the fields of a message, or of a part of it, say that a tool failed."""
    if isinstance(message, list):
        return any(is_error(part, depth - 1) for part in message) if depth else False
    if not isinstance(message, Mapping) or not depth:
        return False
    return (
        any(message.get(name) is True for name in _FLAGS)
        or message.get("status") in ("error", "failed")
        or bool(message.get("error"))
        or any(_is_failure(message.get(name)) for name in _CODES)
        or any(is_error(message.get(name), depth - 1) for name in _INSIDE)
    )


def begins_with_error(text: str) -> bool:
    """Return whether the text of a tool or an environment begins as the report of an error."""
    return _TEXT.match(text) is not None


def _is_failure(code: Any) -> bool:
    return isinstance(code, int) and not isinstance(code, bool) and code > 0
