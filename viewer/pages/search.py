"""The Search page: words in all texts of the store, marked, with links to their steps."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.components.v2 import component

from graphcredit.store.log_text import named, visible
from graphcredit.store.plural import counted
from graphcredit.viewer.queries.outcomes import succeeded
from graphcredit.viewer.queries.texts import MOST_FOUND, TEXTS, found_texts
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.cache import ask, viewed_store

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


_BEFORE, _AFTER = 100, 300
"""Characters that are shown beside the words."""

_OUTCOMES = {"any rollout": None, "succeeded": True, "did not succeed": False}


def show() -> None:
    """Show the page."""
    st.header("Search")
    if not viewed_store().runs():
        missing.no_steps(viewed_store())
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input(
            "Words in actions, thoughts, observations and states", key="find", bind="query-params"
        ).strip()
        ending = st.selectbox("In", list(_OUTCOMES), key="ended", bind="query-params", width=180)
    if not words:
        return
    success = _OUTCOMES[ending]
    found = ask(found_texts, run_id=None, iteration=None, words=words, success=success)
    told = (
        f"{counted(found.num_steps, 'step')} of {counted(found.num_rollouts, 'rollout')}"
        f"{succeeded(found.num_succeeded)}."
    )
    left = found.num_rollouts - MOST_FOUND
    st.caption(f"{told} The first {MOST_FOUND} rollouts are shown." if left > 0 else told)
    show_hits([_hit(place, words) for place in found.places])


def _hit(place: Mapping[str, Any], words: str) -> Hit:
    """Return a place with what stands beside the words."""
    at, text = _at(place, words)
    where = f"{place['run_id']}/{place['iteration']} · {named(place['task_id'])}"
    more = "" if place["num_steps"] == 1 else f" and {place['num_steps'] - 1:,} more"
    step = f"step {place['step_index']}{more}"
    page, address = _page(place, words)
    return Hit(
        title=f"{where} · {named(place['trajectory_id'])} · {step}",
        address=f"/{page}?{urlencode(address)}",
        before=visible(text[max(at.start() - _BEFORE, 0) : at.start()]),
        found=visible(at[0]),
        after=visible(text[at.end() : at.end() + _AFTER]),
    )


def _at(place: Mapping[str, Any], words: str) -> tuple[re.Match[str], str]:
    """Return where the words stand, and in which text.

    In a few letters, lower case is not the same here and in the store: then it is the beginning.
    """
    texts = [place[name] or "" for name in TEXTS]
    wanted = re.compile(re.escape(words), re.IGNORECASE)
    matches = ((match, text) for text in texts if (match := wanted.search(text)))
    beginning = re.compile("").match(texts[0])
    assert beginning is not None
    return next(matches, (beginning, texts[0]))


def _page(place: Mapping[str, Any], words: str) -> tuple[str, dict[str, str]]:
    """Return the page of a step and its address, which marks the words in the conversation."""
    address = {
        "run": place["run_id"],
        "iteration": place["iteration"],
        "task": place["task_id"],
        "trajectory": place["trajectory_id"],
        "step": place["step_index"],
        "find": words,
    }
    return "trajectory", {name: str(value) for name, value in address.items()}


def show_hits(hits: Sequence[Hit]) -> None:
    """Show the places."""
    _component()(key="hits", data={"hits": [asdict(hit) for hit in hits]})


@cache
def _component() -> Callable[..., Any]:
    return component("graphcredit_hits", html='<div class="hits"></div>', css=_STYLE, js=_SCRIPT)
