"""The content of a tool's result: equal for equal facts, however they are put."""

import hashlib
import json
import re
from typing import Any, cast

from graphcredit.store.files.parse import parse_json

NOTHING_DONE = "(nothing yet)"
"""The state of an agent before its first call."""

_SHOWN = 200
"""Characters of a text that a state shows; a digest stands for the rest."""

_PASSING = re.compile(
    r"(time_?stamp|ts|now|(current|server|local)_?time|as_?of"
    r"|(generated|fetched|served|retrieved|queried|requested|responded)_?(at|on)"
    r"|(request|trace|span|call|tool_?call|correlation|response|event|log|query)_?id|nonce|etag"
    r"|(latency|elapsed|took|duration|runtime)(_?(ms|s|seconds|time))?)",
    re.IGNORECASE,
)
"""Fields about the call itself: when it was made, under which id, how long it took."""

_FAILED = re.compile(
    r"\s*(error\b|\w*(error|exception):|traceback \(most recent)"
    r"|\s*\[?your proposed edit has introduced|\s*no replacement was performed",
    re.IGNORECASE,
)
_SAYS_FAILED = ("error", "errors", "exception", "isError", "is_error")


def parsed(text: str) -> Any:
    """Return the JSON object or list of a text without what is about the call; else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = parse_json(text)
        return _canonical(value) if isinstance(value, dict | list) else None
    except ValueError:
        return None


def content_of(text: str) -> str:
    """Return the content of a result.

    JSON has sorted fields and lists, and no field about the call itself; in other texts any white
    space is one blank.
    """
    value = parsed(text)
    return " ".join(text.split()) if value is None else as_json(value)


def is_failure(text: str) -> bool:
    """Return whether a result says that its call failed."""
    if _FAILED.match(text):
        return True
    value = parsed(text)
    if not isinstance(value, dict):
        return False
    fields = cast("dict[str, Any]", value)
    refused = any(fields.get(name) is False for name in ("success", "ok"))
    return refused or fields.get("status") == "error" or any(map(fields.get, _SAYS_FAILED))


def shortened(text: str, shown: int = _SHOWN) -> str:
    """Return a text that identifies another one, and does not grow with it."""
    if len(text) <= shown:
        return text
    return f"{text[:shown]}… #{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


MOST_CHARACTERS = 20_000
"""Of calls or results that a state shows; of more it has a number and a digest."""


class Digest:
    """A digest of texts, each as often as it was added, in any order."""

    def __init__(self) -> None:
        self._sum = self._number = 0

    def add(self, text: str) -> str:
        """Add a text; returns its own digest."""
        own = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:24]
        self._sum = (self._sum + int(own, 16)) % (1 << 96)
        self._number += 1
        return own

    def __str__(self) -> str:
        return f"{self._number:,} in all #{self._sum:024x}"


class TextSet:
    """A set of texts, which a state shows: in alphabetical order, or by a digest if it is long."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._digest = Digest()
        self._num_characters = 0

    def add(self, text: str) -> None:
        """Add a text, of which a long one is cut."""
        if (shown := shortened(text)) not in self._texts:
            self._texts.add(shown)
            self._num_characters += len(shown) + 1
            self._digest.add(shown)

    def __str__(self) -> str:
        is_short = self._num_characters <= MOST_CHARACTERS
        return "\n".join(sorted(self._texts)) if is_short else str(self._digest)


def as_json(value: object) -> str:
    """Return a value as JSON with sorted fields."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {k: _canonical(v) for k, v in fields if not _PASSING.fullmatch(k)}
    if isinstance(value, list):
        return sorted(map(_canonical, cast("list[Any]", value)), key=as_json)
    return canonical_scalar(value)


def canonical_scalar(value: Any) -> Any:
    """Return a number without a fraction as a whole one, and a text without white space around."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.strip() if isinstance(value, str) else value


def clean(text: str) -> str:
    """Return text that UTF-8 can encode: half of a surrogate pair becomes a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
