"""The only functions that may show text from a log.

Streamlit renders Markdown in labels, captions, messages and metrics, and Markdown can fetch images.
So text by an agent or an environment must be shown by the functions of this file; in a label, it
must go through `label` first. Control and invisible characters become visible.

Streamlit is imported at its first use: the HTML exports need the functions that do not show.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa

_CONTROL_PICTURES = 0x2400
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u2067\u206a-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_ISOLATE, _END = "\u2068", "\u2069"
_ISOLATES = re.compile(f"[{_ISOLATE}{_END}]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]")
_QUOTED = re.compile("(?<!`)(`+)(?!`).+?(?<!`)\\1(?!`)")


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


def label(text: str, max_length: int = 80) -> str:
    """Return text that is escaped for Markdown: for links, buttons and expanders."""
    return _PUNCTUATION.sub(r"\\\1", one_line(text, max_length)) or "\\-"


def code_label(text: str, max_length: int = 80) -> str:
    """Return text as Markdown's inline code, for labels of expanders.

    Streamlit makes links of addresses in these, escaped or not; code is left as it is.
    """
    line = one_line(text, max_length) or "-"
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def show_text(text: str) -> None:
    """Show text without Markdown, in the font of the page."""
    import streamlit as st

    st.text(visible(text))


def show_said(sentence: str) -> None:
    """Show a sentence of ours that quotes a log between backticks."""
    show_text(_QUOTED.sub(lambda quoted: isolated(quoted[0]), visible(sentence)))


def show_code(text: str | None) -> None:
    """Show text without Markdown, in a box with a copy button; long lines wrap."""
    import streamlit as st

    st.code(visible(text), language=None, wrap_lines=True, height="content")


def show_table(table: pa.Table, **options: Any) -> Any:
    """Show a table whose cells may have text from a log; return what `st.dataframe` does."""
    import streamlit as st

    return st.dataframe(visible_cells(table), hide_index=True, **options)


def visible_cells(table: pa.Table) -> pa.Table:
    """Return a table whose text cells went through `visible`."""
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


_STYLE = """
pre {
  margin: 0; max-height: 300px; overflow: auto; padding: 8px 11px; border-radius: 6px;
  unicode-bidi: plaintext;
  font-family: var(--st-code-font, monospace); font-size: 12.8px; line-height: 1.45;
  white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4;
  color: var(--st-text-color, #212529); background: #7f87921f;
}
"""

_SCRIPT = """
export default function ({ data, parentElement }) {
  parentElement.querySelector("pre").textContent = data.text;
}
"""


def show_box(text: str | None, *, key: str) -> None:
    """Show every character of a text in a box, in the font of code; it scrolls if it is long.

    `st.text` removes white space around a text, and `st.code` makes the browser load 1.6 MB.
    """
    _box()(key=f"text_box_{key}", data={"text": visible(text)})


@cache
def _box() -> Callable[..., Any]:
    from streamlit.components.v2 import component

    return component("graphcredit_box", html="<pre></pre>", css=_STYLE, js=_SCRIPT)
