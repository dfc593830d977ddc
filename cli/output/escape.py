"""Escape text from logs, so that control characters in it cannot act on a terminal."""

import unicodedata
from typing import TextIO

_ESCAPED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_DIRECTION_MARKS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def plain_text(text: str, *, keep: str = "") -> str:
    r"""Return text whose control characters are escaped (`\n`, `\x1b`).

    Args:
        text: Any text, for example a state that an agent observed.
        keep: Control characters that are not escaped.
    """
    if text.isprintable() and text.isascii():
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if c not in keep
        and (unicodedata.category(c) in _ESCAPED_CATEGORIES or c in _DIRECTION_MARKS)
        else c
        for c in text
    )


class Plain:
    """A text stream that escapes all control characters but newlines and tabs."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Write a text, escaped by `plain_text`."""
        return self._terminal.write(plain_text(text, keep="\n\t"))
