"""Colour a text of code or of a terminal, as runs of characters with the name of a colour.

The names are of this file: nothing of a log becomes a name of a class. Each run goes to the browser
as text, so colours cannot make it markup.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from graphcredit.store.log_text import visible
from graphcredit.viewer.chat.texts import Code

Run: TypeAlias = tuple[str, str]
"""A visible text, and the name of its colour; empty for none."""

_MOST_COLOURED = 30_000
"""Characters of a text to colour: a longer one is shown without."""

_ESCAPE = re.compile("\x1b\\[([0-9;]*)m")
_ANSI = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")

_COLOURS = (
    ("Comment", "comment"),
    ("Keyword", "keyword"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Name.Function", "name"),
    ("Name.Class", "name"),
    ("Name.Tag", "name"),
    ("Name.Builtin", "name"),
    ("Name.Exception", "deleted"),
    ("Generic.Deleted", "deleted"),
    ("Generic.Inserted", "inserted"),
    ("Generic.Heading", "keyword"),
    ("Generic.Subheading", "keyword"),
    ("Generic.Error", "deleted"),
    ("Generic.Traceback", "deleted"),
)
"""Beginning of the name of a kind of token, and its colour."""


@lru_cache(maxsize=4096)
def runs_of(text: str, code: tuple[Code, ...]) -> tuple[Run, ...]:
    """Return the runs of a text; together they are its characters but for codes of colours."""
    if "\x1b[" in text:
        return _joined(_terminal(text))
    if not code or len(text) > _MOST_COLOURED:
        return ((visible(text), ""),) if text else ()
    return _joined(_languages(text, code))


def _terminal(text: str) -> Iterator[Run]:
    """Yield the runs of a terminal's text; codes of other things than colours stay visible."""
    colour, start = "", 0
    for match in _ESCAPE.finditer(text):
        yield text[start : match.start()], colour
        colour, start = _after(colour, match[1]), match.end()
    yield text[start:], colour


def _after(colour: str, codes: str) -> str:
    """Return the colour after a code; grounds, and colours beyond the sixteen, are left out."""
    numbers = [int(code or 0) for code in codes.split(";") if len(code) < 4]
    while numbers:
        number = numbers.pop(0)
        if number in (38, 48):
            # `5;n` or `2;red;green;blue` follow.
            wide = numbers[:1] == [5]
            if number == 38 and wide and 0 <= (numbers[1:2] or [16])[0] < 16:
                colour = _ANSI[numbers[1] % 8]
            numbers = numbers[2 if wide else 4 :]
        elif number in (0, 39):
            colour = ""
        elif 30 <= number <= 37 or 90 <= number <= 97:
            colour = _ANSI[number % 10]
    return colour


def _languages(text: str, code: tuple[Code, ...]) -> Iterator[Run]:
    end = 0
    for each in code:
        yield text[end : each.start], ""
        yield from _tokens(text[each.start : each.end], each.language)
        end = each.end
    yield text[end:], ""


def _tokens(text: str, language: str) -> Iterator[Run]:
    # The library is imported at the first code: a page without any does without it.
    from pygments.lexers import find_lexer_class_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        if "." in language:
            lexer = get_lexer_for_filename(language)
        else:
            lexer = find_lexer_class_by_name(language)()
    except (ClassNotFound, ValueError):
        yield text, ""
        return
    # Rules of some languages end with the line.
    for start, kind, value in lexer.get_tokens_unprocessed(f"{text}\n"):
        name = str(kind).removeprefix("Token.")
        yield (
            value[: len(text) - start],
            next((colour for head, colour in _COLOURS if name.startswith(head)), ""),
        )


def _joined(runs: Iterator[Run]) -> tuple[Run, ...]:
    """Return visible runs, neighbours of one colour as one; white space is of any colour."""
    joined: list[list[str]] = []
    for text, colour in runs:
        if joined and (joined[-1][1] == colour or text.isspace()):
            joined[-1][0] += text
        elif text:
            joined.append([text, colour])
    return tuple((visible(text), colour) for text, colour in joined)
