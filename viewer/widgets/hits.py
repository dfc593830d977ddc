"""A list of places in texts, with the words found marked, each a link."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from streamlit.components.v2 import component

_STYLE = """
.hits a { display: block; margin: 12px 0 2px; font: 15px var(--st-font, sans-serif);
  color: var(--st-primary-color, #1b5ea8); overflow-wrap: anywhere }
.hits p { margin: 0; font: 13px/1.5 var(--st-code-font, monospace); overflow-wrap: anywhere;
  unicode-bidi: plaintext; color: var(--st-text-color, #212529) }
.hits mark { background: #f2c744; color: #212529 }
"""

_SCRIPT = """
export default function ({ data, parentElement }) {
  const made = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const shown = data.hits.flatMap(({ title, address, before, found, after }) => {
    const link = Object.assign(made("a", title), { href: address });
    const place = made("p", "");
    place.append(before, made("mark", found), after);
    return [link, place];
  });
  parentElement.querySelector(".hits").replaceChildren(...shown);
}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A place; its texts are visible ones, see `widgets.text`."""

    title: str
    address: str
    """Of the page that the link leads to."""
    before: str
    found: str
    """What is marked."""
    after: str


def show_hits(hits: Sequence[Hit]) -> None:
    """Show the places."""
    _component()(key="hits", data={"hits": [asdict(hit) for hit in hits]})


@cache
def _component() -> Callable[..., Any]:
    return component("graphcredit_hits", html='<div class="hits"></div>', css=_STYLE, js=_SCRIPT)
