r"""Texts of a log on their way out: one function for each medium that shows them.

`in_terminal`, `as_code` (Markdown) and `in_html` are that; a text that stands in a sentence of ours
goes through `one_line` or `named` first. In each medium, control and invisible characters are seen
and not obeyed, markup is text, and letters from right to left do not turn what is beside them.
"""

import html
import json
import re
import unicodedata
from typing import Any

_CONTROL_PICTURES = 0x2400
_NOT_SEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u2067\u206a-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e0fff"
)
_ISOLATE, _END = "\u2068", "\u2069"
_HIDDEN = re.compile(f"[{_NOT_SEEN}]")
_ISOLATES = re.compile(f"[{_ISOLATE}{_END}]")
_HIDDEN_OR_ISOLATES = re.compile(f"[{_NOT_SEEN}{_ISOLATE}{_END}]")
_ACTS = re.compile(f"[{_NOT_SEEN}\t\n]")
_ACTS_OR_ISOLATES = re.compile(f"[{_NOT_SEEN}\t\n{_ISOLATE}{_END}]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]+")
_WORDS = re.compile(
    f"{_ISOLATE}[^{_ISOLATE}{_END}]*{_END}|{_RIGHT_TO_LEFT.pattern}(?: {_RIGHT_TO_LEFT.pattern})*"
)
"""Words from right to left, and what is isolated already."""
_PROSE = re.compile(r"[^\W_]+|[ ,;:%()'\"…–×+-]|\.(?!\w)|(?<=\d)\.(?=\d)")
"""What means nothing but itself in a line of Markdown that our words begin."""


def in_terminal(text: str, *, keep: str = "") -> str:
    r"""Return text for a terminal: its control characters are escaped (`\n`, `\x1b`).

    Args:
        text: Any text, for example a state that an agent observed.
        keep: Control characters that are not escaped.
    """
    if text.isprintable() and text.isascii():
        return text
    acts = _ACTS if _num_open(text) == 0 else _ACTS_OR_ISOLATES
    shown = acts.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)
    return _WORDS.sub(lambda found: isolated(found[0]), shown)


def in_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON, whose control and invisible characters are escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _HIDDEN_OR_ISOLATES.sub(lambda found: json.dumps(found[0])[1:-1], text)


def as_code(text: str) -> str:
    """Return a text as Markdown's code in one line, whole, whatever backticks it has."""
    line = named(text) or " "
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if "`" in line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def as_prose(text: str) -> str:
    """Return a sentence that may quote a log as it is if it is plain words, else as code.

    Links, mentions, HTML and marks of Markdown are no plain words.
    """
    rest = _PROSE.sub("", text)
    return text if not rest and text[:1].isalnum() else as_code(text)


def in_html(text: str | None) -> str:
    """Return text for HTML and SVG: no markup in it has an effect."""
    return html.escape(visible(text))


def visible(text: str | None) -> str:
    """Return text with visible substitutes for control and invisible characters.

    Line ends and tabs stay, and so do isolates in pairs: see `isolated`. ESC becomes ␛, a character
    that reorders text becomes ⟨U+202E⟩. Null, which an unchecked log may have in place of text,
    becomes ⟨null⟩.
    """
    if text is None:
        return "⟨null⟩"
    shown = _HIDDEN.sub(_picture, text.replace("\r\n", "\n"))
    return shown if _num_open(shown) == 0 else _ISOLATES.sub(_picture, shown)


def named(name: str | None) -> str:
    """Return a name, whole: visible text on one line, isolated from what is beside it."""
    return isolated(" ".join(visible(name).split()))


def one_line(text: str | None, max_length: int = 80) -> str:
    """Return visible text on one line, cut with an ellipsis, isolated from what is beside it."""
    line = " ".join(visible(text).split())
    if len(line) > max_length:
        line = line[: max_length - 1] + "…"
        line += _END * (_num_open(line) or 0)
    return isolated(line)


def isolated(text: str) -> str:
    """Return text that does not turn what stands beside it, such as "2 → 1", from right to left.

    Text without letters of a script from right to left is left as it is.
    """
    is_done = text.startswith(_ISOLATE) and text.endswith(_END)
    return text if is_done or not _RIGHT_TO_LEFT.search(text) else f"{_ISOLATE}{text}{_END}"


def _num_open(text: str) -> int | None:
    """Return the number of isolates that do not end in a text; None if one ends without a start."""
    depth = 0
    for mark in _ISOLATES.findall(text):
        depth += 1 if mark == _ISOLATE else -1
        if depth < 0:
            return None
    return depth


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    if unicodedata.category(match[0]) == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    return f"⟨U+{code:04X}⟩"
