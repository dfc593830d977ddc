"""The viewer: the page of the URL, under a menu of all pages."""

import os
from pathlib import Path

import streamlit as st

from graphcredit.viewer.config import STORE_VARIABLE
from graphcredit.viewer.sitemap import PAGES, page
from graphcredit.viewer.widgets import missing, selection

_STYLE = "<style>[data-testid=stMainBlockContainer] { padding-top: 4.5rem }</style>"
"""Streamlit leaves room for two menus above a page; what is chosen and drawn needs it more."""


def main() -> None:
    """Show the page of the URL."""
    # Tabs of several stores are told apart by their titles.
    name = Path(os.environ[STORE_VARIABLE]).name
    st.set_page_config(page_title=f"{name} · graphcredit", page_icon="🎯", layout="wide")
    st.html(_STYLE)
    shown = st.navigation([page(name) for name in PAGES], position="top")
    selection.restore()
    with missing.guarded("This page"):
        shown.run()
