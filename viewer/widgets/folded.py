"""Choices that fold in a narrow window, so that what a page shows comes first."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from graphcredit.viewer.manners import FOLDED


def folded(key: str) -> DeltaGenerator:
    """Return a place for elements that fold; a wide window shows them like any others.

    Args:
        key: Tells the place from others of the page.
    """
    return st.container(key=f"{FOLDED}_{key}").expander("Choose what is shown", expanded=True)
