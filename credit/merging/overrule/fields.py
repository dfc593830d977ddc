"""Fields of JSON objects in a text: found by their path, and taken out of it.

Nothing else of the text is changed: the other members keep their writing and their order.
"""

import json
import re
from typing import Any

from graphcredit.store.files.parse import json_in

_START = re.compile(r"\{\s*[\"}]|\[\s*[\"{\d\[]")
_BLANK = re.compile(r"\s*")


def without_fields(text: str, path: re.Pattern[str]) -> tuple[str, list[str]]:
    """Return a text without the fields of a path, and the values that they had, as JSON.

    Args:
        text: Any; JSON objects and lists are looked for everywhere but in strings of others.
        path: From `compile_path`; it must match all of a field's path.
    """
    parts: list[str] = []
    values: list[str] = []
    done = 0
    for start, stop, _ in json_in(text, _START):
        cut = _Cut(text, path, values)
        parts += [text[done:start], cut.value(start, "")[0]]
        done = stop
    return "".join([*parts, text[done:]]), values


class _Cut:
    """Goes through one valid object or list."""

    def __init__(self, text: str, path: re.Pattern[str], values: list[str]) -> None:
        self._text, self._path, self._values = text, path, values
        self._decoder = json.JSONDecoder()

    def value(self, start: int, path: str) -> tuple[str, int]:
        """Return what is left of the value that starts there, and where it ends."""
        opening = self._text[start]
        if opening in "{[":
            return self._members(start, path, is_object=opening == "{")
        _, stop = self._decoder.raw_decode(self._text, start)
        return self._text[start:stop], stop

    def _members(self, start: int, path: str, *, is_object: bool) -> tuple[str, int]:
        text, position = self._text, start + 1
        members: list[tuple[str, str, str]] = []
        kept: list[str] = []
        if text[_blank(text, position)] in "}]":
            stop = _blank(text, position) + 1
            return text[start:stop], stop
        while True:
            before = text[position : _blank(text, position)]
            position += len(before)
            key, name = "", f"{path}[]"
            if is_object:
                name, value_at = self._key(position, path)
                key, position = text[position:value_at], value_at
            is_cut = is_object and self._path.fullmatch(name) is not None
            left, stop = self._taken(position) if is_cut else self.value(position, name)
            end = _blank(text, stop)
            members.append((before, key + left, text[stop:end]))
            if not is_cut:
                kept.append(members[-1][1])
            position = end + 1
            if text[end] in "}]":
                break
        if len(kept) < len(members):
            # The gaps stay with their places, so that nothing shows where a member was.
            gaps = [(before, after) for before, _, after in members[: len(kept)]]
            if gaps:
                gaps[-1] = gaps[-1][0], members[-1][2]
            members = [(b, own, a) for (b, a), own in zip(gaps, kept, strict=True)]
        body = ",".join(before + own + after for before, own, after in members)
        return text[start] + body + text[end], position

    def _key(self, start: int, path: str) -> tuple[str, int]:
        """Return the path of the member whose key starts there, and where its value does."""
        key, position = self._decoder.raw_decode(self._text, start)
        position = _blank(self._text, _blank(self._text, position) + 1)
        return f"{path}.{key}" if path else key, position

    def _taken(self, start: int) -> tuple[str, int]:
        value: Any
        value, stop = self._decoder.raw_decode(self._text, start)
        self._values.append(json.dumps(value, sort_keys=True))
        return "", stop


def _blank(text: str, position: int) -> int:
    """Return the first position from there on that is not white space."""
    match = _BLANK.match(text, position)
    assert match is not None
    return match.end()
