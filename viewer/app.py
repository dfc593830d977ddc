"""The Streamlit app: a menu of all pages, and the page of the URL."""

import os
from pathlib import Path

import streamlit as st

from graphcredit.viewer.config import STORE_VARIABLE
from graphcredit.viewer.sitemap import PAGES, page
from graphcredit.viewer.widgets import missing, selection

_STYLE = "<style>[data-testid=stMainBlockContainer] { padding-top: 4.5rem }</style>"
"""Streamlit leaves room for two menus above a page; the page can use that room."""


def main() -> None:
    """Show the page of the URL."""
    # The title distinguishes browser tabs of several stores.
    name = Path(os.environ[STORE_VARIABLE]).name
    st.set_page_config(page_title=f"{name} · graphcredit", page_icon="🎯", layout="wide")
    st.html(_STYLE)
    shown = st.navigation([page(name) for name in PAGES], position="top")
    selection.restore()
    with missing.guarded("This page"):
        shown.run()
