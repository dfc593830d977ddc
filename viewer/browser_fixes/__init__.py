"""Browser fixes where Streamlit has no option: rows, keys, the way back, and what is folded."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import streamlit as st
from streamlit.components.v2 import component
from streamlit.delta_generator import DeltaGenerator


def apply_browser_fixes() -> None:
    """Add the style and the script; called once in every script run."""
    st.html(f"<style>{_asset('fixes.css')}</style>")
    _script()(key="browser_fixes", data={}, height=1)


def opened(label: str, *, key: str) -> DeltaGenerator | None:
    """Return the inside of something that opens by a click; None while it is closed.

    What is in it is neither asked for nor sent before that: the first table of a page costs a
    browser half a megabyte of script.
    """
    expander = st.expander(label, key=f"open_{key}", on_change="rerun")
    return expander if expander.open else None


def folded(key: str) -> DeltaGenerator:
    """Return a place for elements that folds in a narrow window; a wide one shows them as usual."""
    # The script and the style know such places by the beginning of their keys.
    return st.container(key=f"folded_{key}").expander("Choose what is shown", expanded=True)


@cache
def _script() -> Callable[..., Any]:
    return component("graphcredit_browser_fixes", js=_asset("fixes.js"))


def _asset(name: str) -> str:
    return (files("graphcredit.viewer.browser_fixes") / name).read_text(encoding="utf-8")
