"""A box for a text of a log, every character of which is shown; drawn by a component of our own.

`st.text` removes white space around a text, and `st.code` makes the browser load 1.6 MB.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from streamlit.components.v2 import component

from graphcredit.viewer.widgets.text import visible

_STYLE = """
pre {
  margin: 0; max-height: 300px; overflow: auto; padding: 8px 11px; border-radius: 6px;
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
    """Show a text in a box, in the font of code; it scrolls if the text is long.

    Args:
        text: The text.
        key: Tells the box from others of the page.
    """
    _box()(key=f"text_box_{key}", data={"text": visible(text)})


@cache
def _box() -> Callable[..., Any]:
    return component("graphcredit_box", html="<pre></pre>", css=_STYLE, js=_SCRIPT)
