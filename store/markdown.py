"""Texts of a log in Markdown: nothing of them is live there, on no site that renders it."""

import re

_PROSE = re.compile(r"[^\W_]+|[ ,;:%()'\"…–×+-]|\.(?!\w)|(?<=\d)\.(?=\d)")
"""What means nothing but itself in a line of Markdown that our words begin."""


def as_code(text: str) -> str:
    """Return a text as code in one line, whole, whatever backticks it has."""
    line = " ".join(text.split())
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if "`" in line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def as_prose(text: str) -> str:
    """Return a sentence that may quote a log as it is if it is plain words, else as code.

    Links, mentions, HTML and marks of Markdown are no plain words.
    """
    rest = _PROSE.sub("", text)
    return text if not rest and text[:1].isalnum() else as_code(text)
