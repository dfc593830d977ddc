"""The only ways in which text from a log reaches the screen.

Streamlit reads Markdown in labels, captions, messages and metrics, and Markdown can fetch images.
Whatever an agent or an environment wrote is therefore shown by the functions of this file, or, in
a label, goes through `label` first. Characters that a screen hides or obeys become visible.
"""

import re
import unicodedata
from typing import Any

import pyarrow as pa
import streamlit as st

_CONTROL_PICTURES = 0x2400
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def visible(text: str | None) -> str:
    """Return text in which control characters, ANSI escapes and the like can be seen.

    Line feeds and tabs stay; ESC becomes ␛, a character that reorders text becomes ⟨U+202E⟩. A log
    that nobody checked may have no text where there should be one: that becomes ⟨null⟩.
    """
    return "⟨null⟩" if text is None else _HIDDEN.sub(_picture, text)


def one_line(text: str | None, max_length: int = 80) -> str:
    """Return visible text on one line, cut with an ellipsis."""
    line = " ".join(visible(text).split())
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


def label(text: str, max_length: int = 80) -> str:
    """Return text for a place where Streamlit reads Markdown: a link, a button, an expander."""
    return _PUNCTUATION.sub(r"\\\1", one_line(text, max_length)) or "\\-"


def show_text(text: str) -> None:
    """Show text as it is, in the font of the page."""
    st.text(visible(text))


def show_code(text: str | None, *, height: int | None = None) -> None:
    """Show text as it is, in a box with a button that copies it; long lines wrap.

    Args:
        text: The text.
        height: Pixels, beyond which the box scrolls; by default it is as high as its text.
    """
    st.code(
        visible(text),
        language=None,
        wrap_lines=True,
        height="content" if height is None else height,
    )


def show_table(table: pa.Table, **options: Any) -> Any:
    """Show a table with text from a log in its cells.

    Args:
        table: The rows.
        options: Of `st.dataframe`.

    Returns:
        What `st.dataframe` returns: with `on_select`, the selection.
    """
    return st.dataframe(visible_cells(table), hide_index=True, **options)


def visible_cells(table: pa.Table) -> pa.Table:
    """Return a table whose text cells have been made visible."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            cells = [None if cell is None else visible(cell) for cell in table[index].to_pylist()]
            table = table.set_column(index, field.name, pa.array(cells, pa.string()))
    return table


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    if unicodedata.category(match[0]) == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    return f"⟨U+{code:04X}⟩"
