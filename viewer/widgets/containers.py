"""Containers that several pages share, and their style in a narrow window."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

_NARROW = """
<style>
@media (max-width: 640px) {
  [class*=st-key-choices] { flex-wrap: nowrap; overflow-x: auto }
  [class*=st-key-choices] > * { flex: none }
}
</style>
"""
"""Choices of a narrow window stand in one line, so that what a page shows comes first."""


def add_style() -> None:
    """Add the style to a page; called once in every script run."""
    st.html(_NARROW)


def choices(page: str) -> DeltaGenerator:
    """Return a place for the boxes that choose what a page shows."""
    return st.container(key=f"choices_{page}", horizontal=True, vertical_alignment="bottom")


def opened(label: str, *, key: str) -> DeltaGenerator | None:
    """Return the inside of something that opens by a click; None while it is closed.

    What is in it is neither asked for nor sent before that: the first table of a page costs a
    browser half a megabyte of script.
    """
    expander = st.expander(label, key=f"open_{key}", on_change="rerun")
    return expander if expander.open else None
