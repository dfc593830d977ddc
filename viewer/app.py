"""The viewer: the page of the URL, under a menu of all pages."""

import streamlit as st

from graphcredit.viewer import missing, selection
from graphcredit.viewer.sitemap import PAGES, page


def main() -> None:
    """Show the page of the URL."""
    st.set_page_config(page_title="graphcredit", page_icon="🎯", layout="wide")
    shown = st.navigation([page(name) for name in PAGES], position="top")
    selection.restore()
    with missing.guarded("This page"):
        shown.run()
