"""The structure of a text: JSON, markup, or else lines.

Nothing is left out but what says nothing in such a structure: the order of keys in a JSON object
and of attributes in a tag, gaps between elements, and empty lines.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from graphcredit.credit.merging.segments.tokens import ESCAPE, SLOT, Line, split
from graphcredit.store.files.parse import json_in

_TAG = re.compile(
    r"<(/?)([A-Za-z][\w:-]*)"
    r"((?:\s+[\w:@.-]+(?:\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'|[^\s\"'<>]+))?)*)\s*(/?)>"
)
"""No value of an attribute has a `<`, as in XML: so each `<` is looked at once."""
_ATTRIBUTE = re.compile(r"([\w:@.-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_JSON = re.compile(r"\{\s*[\"}]|\[\s*[\"{\d]")
ATTRIBUTE = " @"
"""Stands in the address of an attribute, before its name."""
COLOURS = " colours"
"""Ends the address of the colours of a line."""
NUMBERED = " #"
"""Ends the address of a line that begins with its number."""
_DEPTH = 8
"""Structures inside structures are parsed so deep."""
_MOST_DIGITS = 18
"""Of the number of a line."""


class Parser:
    """Parses texts, each distinct line of plain text once."""

    def __init__(self) -> None:
        self._known: dict[str, Line] = {}

    def lines(self, text: str) -> list[Line]:
        """Return the lines of a text in order."""
        if _has_structure(text) or "\x1b" in text:
            return _numbered(list(_parse(text, "", _DEPTH)))
        result: list[Line] = []
        for text_line in text.splitlines():
            if text_line and not text_line.isspace():
                line = self._known.get(text_line)
                if line is None:
                    line = self._known[text_line] = split("", text_line)
                result.append(line)
        return _numbered(result)


def parse(text: str) -> list[Line]:
    """Return the lines of a text in order."""
    return Parser().lines(text)


def _numbered(lines: list[Line]) -> list[Line]:
    """Return lines, with a mark in the address of those that are numbered one after the other."""
    last, last_number = -1, -1
    for at, line in enumerate(lines):
        number = _number_of(line)
        if number is not None:
            if last >= 0 and number == last_number + 1:
                for own in (last, at):
                    address = lines[own].address.removesuffix(NUMBERED)
                    lines[own] = lines[own]._replace(address=f"{address}{NUMBERED}")
            last, last_number = at, number
    return lines


def _number_of(line: Line) -> int | None:
    """Return the number that a line begins with; None for one of more digits than lines have."""
    if not line.values or line.pieces[0].strip():
        return None
    first = line.values[0]
    return int(first) if first.isdecimal() and len(first) <= _MOST_DIGITS else None


def _has_structure(text: str) -> bool:
    return "{" in text or "<" in text or (text[:1] == "[" and _JSON.match(text) is not None)


def _parse(text: str, address: str, depth: int) -> Iterator[Line]:
    start = 0
    if depth and _has_structure(text):
        for begin, end, value in json_in(text, _JSON):
            yield from _markup(text[start:begin], address)
            yield from _leaves(value, address, depth - 1)
            start = end
    yield from _markup(text[start:], address)


def _leaves(value: Any, address: str, depth: int) -> Iterator[Line]:
    if isinstance(value, dict) and value and depth:
        # A key that is a value, such as an identifier, is a line of its own.
        lines = {key: split("", key) for key in value}
        names = {key: SLOT if line.pieces == ("", "") else key for key, line in lines.items()}
        for key in sorted(value, key=names.__getitem__):
            if names[key] == SLOT:
                yield lines[key]._replace(address=f"{address}.{SLOT}")
            yield from _leaves(value[key], f"{address}.{names[key]}", depth - 1)
    elif isinstance(value, list) and value and depth:
        for item in value:
            yield from _leaves(item, f"{address}[]", depth - 1)
    elif isinstance(value, str) and value.strip():
        yield from _parse(value, address, depth)
    else:
        yield split(address, json.dumps(value, sort_keys=True))


def _markup(text: str, address: str) -> Iterator[Line]:
    if "<" not in text:
        yield from _plain(text.splitlines(), address)
        return
    # What is never closed is no element, such as `<socket fd=7>`.
    ending = {tag[2].lower() for tag in _TAG.finditer(text) if tag[1]} | _VOID
    tags = [tag for tag in _TAG.finditer(text) if tag[2].lower() in ending or tag[4]]
    yield from _plain(text[: tags[0].start() if tags else len(text)].splitlines(), address)
    stack: list[str] = []
    num_open = Counter[str]()
    is_empty = False
    for tag, following in zip(tags, [*tags[1:], None], strict=False):
        closes, name, attributes, is_void = tag.groups()
        inner = f"{address}<{name.lower()}>"
        if not closes:
            yield from _attributes(inner, attributes)
        if closes and is_empty:
            yield Line(inner, ("",), ())
        if closes and num_open[inner]:
            while stack[-1] != inner:
                num_open[stack.pop()] -= 1
            num_open[stack.pop()] -= 1
        elif is_void or name.lower() in _VOID:
            yield Line(inner, ("",), ())
        elif not closes:
            stack.append(inner)
            num_open[inner] += 1
        between = text[tag.end() : following.start() if following else len(text)]
        is_empty = not closes and not (between.strip() or attributes.strip())
        yield from _plain(html.unescape(between).splitlines(), stack[-1] if stack else address)


_VOID = frozenset({"br", "hr", "img", "input", "meta", "link", "col", "source", "wbr"})
"""Elements that never end."""


def _attributes(element: str, attributes: str) -> Iterator[Line]:
    """Yield a line for each attribute; all of its value is one typed token."""
    for key, *values in sorted(_ATTRIBUTE.findall(attributes)):
        yield Line(f"{element}{ATTRIBUTE}{key}", ("", ""), (html.unescape("".join(values)),))


def _plain(lines: Iterable[str], address: str) -> Iterator[Line]:
    """Yield the lines of plain text; the colours of a line follow it, as one typed token."""
    for line in lines:
        shown = ESCAPE.sub("", line) if "\x1b" in line else line
        if shown and not shown.isspace():
            yield split(address, shown)
        if shown != line:
            hidden, colours = 0, list[str]()
            for match in ESCAPE.finditer(line):
                colours.append(f"{match.start() - hidden}{match[0][1:]}")
                hidden += len(match[0])
            yield Line(f"{address}{COLOURS}", ("", ""), (" ".join(colours),))
