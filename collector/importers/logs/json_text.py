"""JSON texts of logs: read leniently, written strictly, and digests of values."""

import ast
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

import orjson

from graphcredit.store.files.parse import MAX_DEPTH, parse_json, refuse_deep

_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_MANY_DIGITS = b"0" * 19
"""No shorter whole number is beyond 64 bits."""

_SHORT = min(len(_MANY_DIGITS), MAX_DEPTH)
"""Bytes of a text that can be neither deep nor have many digits."""

_WHOLE_NUMBER = re.compile(rb'(?<![\d.eE+"-])-?\d{19,}(?![\d.eE"])')


def parse_json_text(text: bytes | str) -> Any:
    """Return the value of a JSON text, with all digits of whole numbers.

    Python's reader takes what the strict one refuses: NaN, halves of surrogate pairs, a byte order
    mark. The strict one makes floats of whole numbers beyond 64 bits.

    Raises:
        ValueError: It is no JSON, or is nested deeper than `MAX_DEPTH`.
    """
    try:
        data = text if isinstance(text, bytes) else text.encode()
        value = orjson.loads(data)
    except (UnicodeEncodeError, orjson.JSONDecodeError):
        return parse_json(text)
    if len(data) < _SHORT:
        return value
    if _MANY_DIGITS in data.translate(_DIGITS) and _WHOLE_NUMBER.search(data):
        return parse_json(text)
    if len(data) > MAX_DEPTH and data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        refuse_deep(value)
    return value


def parse_python(text: str) -> Any:
    """Return the value of a literal of Python; None if a text is none, or has more than a MiB."""
    try:
        return ast.literal_eval(text) if len(text) <= 1 << 20 else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def refuse_repeated_keys(text: bytes, value: object) -> None:
    """Raise ValueError if an object has a key twice in the JSON text of a value: one would be lost.

    A text has as many colons as a new one of its value, unless a key is lost, or one is escaped:
    then Python's reader decides.
    """
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:
        written = b""
    is_escaped = b"\\u003a" in text or b"\\u003A" in text
    if is_escaped or text.count(b":") != written.count(b":"):
        json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"an object must have each of its keys once: it has {name!r} twice")
        fields[name] = value
    return fields


def strict_json(value: object) -> str:
    """Return a value as strict JSON in its own order; numbers that JSON lacks (NaN) become null.

    Raises:
        ValueError: It refers to itself.
        TypeError: A key is no text.
        RecursionError: It is nested too deep.
    """
    return _encoded(value, is_sorted=False).decode()


def content_digest(value: object) -> str:
    """Return 16 hexadecimal digits that are equal for equal values, in whatever order their keys.

    Raises:
        ValueError, TypeError, RecursionError: As `strict_json`.
    """
    return hashlib.sha256(_encoded(value, is_sorted=True)).hexdigest()[:16]


_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def _encoded(value: object, *, is_sorted: bool) -> bytes:
    try:
        sorting = orjson.OPT_SORT_KEYS if is_sorted else 0
        return orjson.dumps(value, default=_replaced, option=_OPTIONS | sorting)
    except orjson.JSONEncodeError:
        text = json.dumps(
            _without_nan(value),
            default=str,
            ensure_ascii=False,
            separators=(",", ":"),
            sort_keys=is_sorted,
        )
        return text.encode("utf-8", "replace")


def _replaced(value: object) -> object:
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else str(value)


def _without_nan(value: Any) -> Any:
    match value:
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
        case Mapping():
            return {str(key): _without_nan(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_nan(item) for item in value]
        case _:
            return value
