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

_FENCE = re.compile(r"[ \t]*(```|~~~)[ \t]*([\w+#.-]{1,40})?")
_CALL = re.compile(r"([\w./:-]+)\((\{.*\})\)", re.DOTALL)
_ESCAPED = re.compile(r"\\(r\\n|.)")

_LAID_OUT = re.compile(r".*\S {3,}\S.*|.*\t.*|[^\w\s]{3,}[^A-Za-z]*|(?:\S )+\S")
"""A line of columns, of a picture in characters, or of single characters."""

_DIFF = re.compile(r"^(?:diff --git |@@ -\d|--- \S.*\n\+\+\+ \S)", re.MULTILINE)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):", re.MULTILINE)

_LANGUAGES = {
    **dict.fromkeys(("code", "python", "cell"), "python"),
    **dict.fromkeys(("command", "cmd", "commands", "script", "bash", "keystrokes"), "bash"),
    **dict.fromkeys(("patch", "diff"), "diff"),
    "sql": "sql",
}
"""Name of an argument to the language of its text."""
_FILES = ("path", "file_path", "filename", "file", "file_name")
"""Arguments that name the file that others have text of."""

_MOST_PRETTY = 200_000
"""Most characters of a JSON text to lay out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A range of a text in a known language."""

    start: int
    end: int
    language: str
    """A name that pygments knows, or one of a file in the language."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part of a message that has one font."""

    text: str
    title: str = ""
    is_code: bool = False
    code: tuple[Code, ...] = ()
    """Where the text can be coloured, in order."""


def parts_of(text: str, title: str = "") -> tuple[Part, ...]:
    """Return a text as prose and code; the title is that of the first part.

    Code is what stands between fences, the fences too, text that is laid out in columns or as a
    picture, that of a terminal, and what shows its language. JSON is laid out anew.
    """
    text = _unix(text)
    laid_out = pretty_json(text)
    if laid_out is not None:
        return (code_part(laid_out, title, language="json"),)
    parts = [
        _piece(piece, is_code, language)
        for piece, is_code, language in _pieces(text.split("\n"))
        if piece.strip()
    ]
    if not parts:
        return ()
    first, *others = parts
    return replace(first, title=title), *others


def code_part(text: str, title: str = "", *, language: str = "") -> Part:
    """Return a text all of which is code; its language is guessed if it is not given."""
    text = _unix(text)
    language = language or _guessed(text)
    code = (Code(start=0, end=len(text), language=language),) if language else ()
    return Part(text=text, title=title, is_code=True, code=code)


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
    text, code = "", list[Code]()
    file = next((str(arguments[each]) for each in _FILES if arguments.get(each)), "")
    for argument, value in arguments.items():
        text += ("\n" if text else "") + f"{argument}: "
        shown, language = _value(value), "json"
        if isinstance(value, str):
            known = _LANGUAGES.get(argument) or file.rpartition("/")[2]
            language = (known or _guessed(value)) if shown.startswith("\n") else ""
        if language:
            code.append(Code(start=len(text), end=len(text) + len(shown), language=language))
        text += shown
    return Part(text=text, title=f"Calls {name}", is_code=True, code=tuple(code))


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


def _piece(text: str, is_fenced: bool, language: str) -> Part:
    """Return prose or code; of what is between fences, all but the fences is in the language."""
    if not is_fenced:
        guessed = _guessed(text)
        is_code = bool(guessed) or "\x1b[" in text or _is_laid_out(text)
        return code_part(text, language=guessed) if is_code else Part(text=text)
    start = text.find("\n") + 1
    last = text.rfind("\n")
    is_closed = last >= start and _FENCE.match(text, last + 1) is not None
    end = last if is_closed else len(text)
    language = language or _guessed(text[start:end])
    code = (Code(start=start, end=end, language=language),) if language and start else ()
    return Part(text=text, is_code=True, code=code)


def _pieces(lines: list[str]) -> Iterator[tuple[str, bool, str]]:
    """Yield runs of lines, whether they are between fences, and the language that is named."""
    run: list[str] = []
    fence: str | None = None
    language = ""
    for line in lines:
        match = _FENCE.match(line)
        if match is not None and fence is None:
            yield "\n".join(run), False, ""
            run, fence, language = [line], match[1], match[2] or ""
        elif match is not None and match[1] == fence:
            yield "\n".join([*run, line]), True, language
            run, fence = [], None
        else:
            run.append(line)
    yield "\n".join(run), fence is not None, language


def _guessed(text: str) -> str:
    """Return the language of a text that shows it at once; empty for any other."""
    if _DIFF.search(text):
        return "diff"
    return "pytb" if _TRACEBACK.search(text) else ""


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _is_laid_out(text: str) -> bool:
    return sum(_LAID_OUT.fullmatch(line) is not None for line in text.split("\n")) > 1
