"""Cut the text of a message into prose and code, and lay out what is JSON, to be read as text.

Nothing is rendered: marks of Markdown stay where they are, and every character is kept but for the
white space of JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphcredit.store.files.parse import parse_json

_FENCE = re.compile(r"[ \t]*(```|~~~)")
_CALL = re.compile(r"([\w./:-]+)\((\{.*\})\)", re.DOTALL)

_LAID_OUT = re.compile(r".*\S {3,}\S.*|.*\t.*|[^\w\s]{3,}[^A-Za-z]*|(?:\S )+\S")
"""A line of columns, of a picture in characters, or of single characters."""

_MOST_PRETTY = 200_000
"""Most characters of a JSON text to lay out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part of a message that has one font."""

    text: str
    title: str = ""
    is_code: bool = False


def parts_of(text: str, title: str = "") -> tuple[Part, ...]:
    """Return a text as prose and code; the title is that of the first part.

    Code is what stands between fences, the fences too, and text that is laid out in columns or as a
    picture. JSON is laid out anew.
    """
    laid_out = pretty_json(text)
    if laid_out is not None:
        return (code_part(laid_out, title),)
    parts = [
        Part(text=piece, is_code=is_code or _is_laid_out(piece))
        for piece, is_code in _pieces(text.split("\n"))
        if piece.strip()
    ]
    if not parts:
        return ()
    first, *others = parts
    return Part(text=first.text, title=title, is_code=first.is_code), *others


def code_part(text: str, title: str = "") -> Part:
    """Return a text all of which is code."""
    return Part(text=text, title=title, is_code=True)


def calls_of(action: str) -> list[Part]:
    """Return a part for each tool call of an action, `name({…})` one a line; empty if it is text.

    Arguments are listed one by one, and texts of several lines keep their lines.
    """
    calls: list[Part] = []
    for line in action.split("\n"):
        match = _CALL.fullmatch(line)
        arguments = None if match is None else _object(match[2])
        if match is None or arguments is None:
            return []
        calls.append(code_part(arguments_text(arguments), f"Calls {match[1]}"))
    return calls


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call as lines `name: value`."""
    return "\n".join(f"{name}: {_value(value)}" for name, value in arguments.items())


def pretty_json(text: str) -> str | None:
    """Return JSON on indented lines; None for a text that is no object or list in JSON."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > _MOST_PRETTY:
        return None
    try:
        value = parse_json(text)
        return json.dumps(value, indent=2, ensure_ascii=False) if value else None
    except ValueError:
        return None


def _value(value: Any) -> str:
    if isinstance(value, str) and "\n" in value:
        return f"\n{value}"
    return json.dumps(value, ensure_ascii=False)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _pieces(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield runs of lines, and whether they are between fences."""
    run: list[str] = []
    fence: str | None = None
    for line in lines:
        match = _FENCE.match(line)
        if match is not None and fence is None:
            yield "\n".join(run), False
            run, fence = [line], match[1]
        elif match is not None and match[1] == fence:
            yield "\n".join([*run, line]), True
            run, fence = [], None
        else:
            run.append(line)
    yield "\n".join(run), fence is not None


def _is_laid_out(text: str) -> bool:
    return sum(_LAID_OUT.fullmatch(line) is not None for line in text.split("\n")) > 1
