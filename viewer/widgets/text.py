"""The only functions that may show text from a log.

Streamlit renders Markdown in labels, captions, messages and metrics, and Markdown can fetch images.
So text by an agent or an environment must be shown by the functions of this file; in a label, it
must go through `label` first. Control and invisible characters become visible.

Streamlit is imported at its first use: the HTML exports need the functions that do not show.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa

from graphcredit.store.log_text import as_code, isolated, one_line, visible

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_QUOTED = re.compile("(?<!`)(`+)(?!`).+?(?<!`)\\1(?!`)")


def label(text: str, max_length: int = 80) -> str:
    """Return text that is escaped for Markdown: for links, buttons and expanders."""
    return _PUNCTUATION.sub(r"\\\1", one_line(text, max_length)) or "\\-"


def code_label(text: str, max_length: int = 80) -> str:
    """Return text as Markdown's inline code, for labels of expanders.

    Streamlit makes links of addresses in these, escaped or not; code is left as it is.
    """
    return as_code(one_line(text, max_length) or "-")


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
