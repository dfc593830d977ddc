"""Cut the text of a message into prose and code, and lay out what is JSON, to be read as text.

Nothing is rendered: marks of Markdown stay where they are, and every character is kept but for the
white space of JSON, and line ends within its texts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphcredit.store.files.parse import parse_json

_FENCE = re.compile(r"[ \t]*(```|~~~)")
_CALL = re.compile(r"([\w./:-]+)\((\{.*\})\)", re.DOTALL)
_ESCAPED = re.compile(r"\\(r\\n|.)")

_LAID_OUT = re.compile(r".*\S {3,}\S.*|.*\t.*|[^\w\s]{3,}[^A-Za-z]*|(?:\S )+\S")
"""A line of columns, of a picture in characters, or of single characters."""

_CODE = re.compile(
    r"(?m)^(?:diff --git |@@ -\d|--- \S.*\n\+\+\+ \S|Traceback \(most recent call last\):)|\x1b\["
)
"""What a diff, a traceback or the text of a terminal has."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

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

    Code is what stands between fences, the fences too, text that is laid out in columns or as a
    picture, that of a terminal, diffs and tracebacks. JSON is laid out anew.
    """
    text = _unix(text)
    laid_out = pretty_json(text)
    if laid_out is not None:
        return (code_part(laid_out, title),)
    parts = [
        code_part(piece) if is_fenced or _is_code(piece) else Part(text=piece)
        for piece, is_fenced in _pieces(text.split("\n"))
        if piece.strip()
    ]
    if not parts:
        return ()
    first, *others = parts
    return replace(first, title=title), *others


def code_part(text: str, title: str = "") -> Part:
    """Return a text all of which is code, without a terminal's colours."""
    return Part(text=_COLOUR.sub("", _unix(text)), title=title, is_code=True)


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
        calls.append(call_part(match[1], arguments))
    return calls


def call_part(name: str, arguments: Mapping[str, Any]) -> Part:
    """Return a call, its arguments as lines `name: value`."""
    lines = (f"{argument}: {_value(value)}" for argument, value in arguments.items())
    return code_part("\n".join(lines), f"Calls {name}")


def pretty_json(text: str) -> str | None:
    """Return JSON on indented lines, with the line ends of its texts; None for other text.

    A number or a text alone is other text.
    """
    if not text.lstrip().startswith(("{", "[")) or len(text) > _MOST_PRETTY:
        return None
    try:
        value = parse_json(text)
        return as_json(value) if value else None
    except ValueError:
        return None


def as_json(value: Any) -> str:
    """Return a value as JSON on indented lines, with the line ends of its texts."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    return "\n".join(map(_broken, lines))


def _broken(line: str) -> str:
    """Return a line of JSON with the line ends of its text, indented as it is."""
    margin = "\n" + " " * (len(line) - len(line.lstrip()) + 2)
    kept = {"n": margin, "r\\n": margin, "t": "\t"}
    return _ESCAPED.sub(lambda match: kept.get(match[1], match[0]), line)


def _value(value: Any) -> str:
    if isinstance(value, str) and "\n" in value:
        return f"\n{_unix(value)}"
    return (
        as_json(value) if isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False)
    )


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


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _is_code(text: str) -> bool:
    num_laid_out = sum(_LAID_OUT.fullmatch(line) is not None for line in text.split("\n"))
    return num_laid_out > 1 or _CODE.search(text) is not None
