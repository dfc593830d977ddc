"""The structure of a text: JSON, markup, key-value lines, tables, or else lines and sentences.

A text becomes a list of segments. A segment is the tokens of a sentence, or of a field's value,
with the address of the field. Nothing is left out but what says nothing in such a structure: the
order of keys in a JSON object and of attributes in a tag.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from graphcredit.credit.merging.segments.text.tokens import Tokens, is_layout, tokenise

_SENTENCE = re.compile(r"(?<=[.!?;])(?=\s)|(?<=[.!?][\"')\]])(?=\s)|(?<=\s)\|(?=\s)")
_MAY_END = re.compile(r"[.!?;|][\"')\]]?\s")
"""Is in any line that `_SENTENCE` splits, and is found faster."""
_TAG = re.compile(
    r"<(/?[A-Za-z][\w:-]*)((?:\s+[\w:@.-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?)*)\s*/?>"
)
_ATTRIBUTE = re.compile(r"([\w:@.-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_FIELD = re.compile(r"([^\W\d_][\w.-]*)\s*:(?=\s|$)\s*(.*)", re.DOTALL)
_BOXED = re.compile(r"\s*([|│┃║])\s+((?:(?!\1).)*\S)\s*\1\s*")
"""A line of a box; a table has more columns."""
_WORD = re.compile(r"[^\W\d_]{3}")
"""Is in no line of a map."""
_DEPTH = 8
"""Structures inside structures are parsed so deep."""


class Segment(NamedTuple):
    """A sentence, or the value of a field."""

    address: str
    """Where it stands: names of fields; empty in running text."""
    tokens: Tokens


def name_of(address: str) -> str:
    """Return the name of a field in running text that ends an address, with its colon, or ""."""
    return address.rpartition(" ")[2] if address.endswith(":") else ""


def without_layout(part: Segment) -> Segment:
    """Return a segment without punctuation and gaps."""
    return Segment(part.address, tuple([t for t in part.tokens if not is_layout(t)]))


def parse(text: str) -> list[Segment]:
    """Return the segments of a text in order."""
    return list(_parse(text, "", _DEPTH))


def is_plain(text: str) -> bool:
    """Return whether each line of a text can be parsed by itself."""
    return not ("{" in text or "<" in text or "&" in text or text[:1] == "[")


def _parse(text: str, address: str, depth: int) -> Iterator[Segment]:
    start = 0
    if depth and ("{" in text or text[:1] == "["):
        for begin, end, value in _json_in(text):
            yield from _markup(text[start:begin], address)
            yield from _leaves(value, address, depth - 1)
            start = end
    yield from _markup(text[start:] if start else text, address)


def _json_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield where JSON objects and lists of objects begin and end in a text, and their values."""
    decoder, position = json.JSONDecoder(), 0
    while (found := re.compile(r"\{\s*[\"}]|\[\s*[\"{\d]").search(text, position)) is not None:
        try:
            value, position = decoder.raw_decode(text, found.start())
            yield found.start(), position, value
        except (ValueError, RecursionError):
            position = found.end()


def _leaves(value: Any, address: str, depth: int) -> Iterator[Segment]:
    if isinstance(value, dict) and depth:
        for key in sorted(value):
            yield from _leaves(value[key], f"{address}.{key}", depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _leaves(item, f"{address}[]", depth - 1)
    elif isinstance(value, str):
        found = list(_parse(value, address, depth))
        yield from found or [Segment(address, ())]
    else:
        yield Segment(address, tokenise(json.dumps(value)))


def _markup(text: str, address: str) -> Iterator[Segment]:
    if "<" not in text:
        yield from _lines(text, address)
        return
    start = 0
    for tag in _TAG.finditer(text):
        if tag.start() > start and not text[start : tag.start()].isspace():
            yield from _lines(_plain(text[start : tag.start()], start > 0), address)
        yield from _tag(tag[1].lower(), tag[2], address)
        start = tag.end()
    if start < len(text):
        yield from _lines(_plain(text[start:], start > 0), address)


def _plain(text: str, is_markup: bool) -> str:
    return html.unescape(text) if is_markup or "&" in text else text


def _tag(name: str, attributes: str, address: str) -> Iterator[Segment]:
    yield Segment(f"{address}<{name}>", ())
    if not attributes:
        return
    for key, *values in sorted(_ATTRIBUTE.findall(attributes)):
        yield Segment(f"{address}<{name} {key}>", tokenise(html.unescape("".join(values))))


def _lines(text: str, address: str) -> Iterator[Segment]:
    for line in text.splitlines():
        own = address
        if (boxed := _BOXED.fullmatch(line)) and _WORD.search(line):
            line = boxed[2]
        if line[:1].isalpha() and (field := _FIELD.fullmatch(line)):
            own, line = f"{address} {field[1].casefold()}:".lstrip(), field[2]
            if not line:
                yield Segment(own, ())
        is_row = line[:1] == "|" and line.count("|") > 1
        is_one = is_row or not _MAY_END.search(line)
        for part in [line] if is_one else _SENTENCE.split(line):
            if tokens := tokenise(part.strip() if part[:1] != " " else part.rstrip()):
                yield Segment(own, tokens)
                own = address
