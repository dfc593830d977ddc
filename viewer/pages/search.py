"""The Search page: words in all texts of the store, marked, with links to their steps."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from graphcredit.store.log_text import named, visible
from graphcredit.store.plural import counted
from graphcredit.viewer.queries.texts import MOST_FOUND, TEXTS, Found, found_texts
from graphcredit.viewer.widgets import missing
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.hits import Hit, show_hits

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
    st.caption(_counts(found))
    show_hits([_hit(place, words) for place in found.places])


def _counts(found: Found) -> str:
    told = (
        f"{counted(found.num_steps, 'step')} of {counted(found.num_rollouts, 'rollout')}, of which "
        f"{found.num_succeeded:,} succeeded."
    )
    left = found.num_rollouts - MOST_FOUND
    return f"{told} The first {MOST_FOUND} rollouts are shown." if left > 0 else told


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
