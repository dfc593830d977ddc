"""What is closed at first: choices in a narrow window, and what few look at."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from graphcredit.viewer.manners import FOLDED


def opened(label: str, *, key: str) -> DeltaGenerator | None:
    """Return the inside of something that opens by a click; None while it is closed.

    What is in it is neither asked for nor sent before that: the first table of a page costs a
    browser half a megabyte of script.

    Args:
        label: Its title.
        key: Tells it from others of the page.
    """
    place = st.expander(label, key=f"open_{key}", on_change="rerun")
    return place if place.open else None


def folded(key: str) -> DeltaGenerator:
    """Return a place for elements that fold; a wide window shows them like any others.

    Args:
        key: Tells the place from others of the page.
    """
    return st.container(key=f"{FOLDED}_{key}").expander("Choose what is shown", expanded=True)
