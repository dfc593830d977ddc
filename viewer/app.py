"""The viewer's entry, which `graphcredit view` gives to `streamlit run`; one run per click."""

import sys
from pathlib import Path

# `streamlit run` puts the folder of this file on the path, where our `html.py` would be found
# before Python's own.
sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]

import streamlit as st  # noqa: E402

from graphcredit.viewer import missing, selection  # noqa: E402
from graphcredit.viewer.sitemap import PAGES, page  # noqa: E402


def main() -> None:
    """Show the page of the URL."""
    st.set_page_config(page_title="graphcredit", page_icon="🎯", layout="wide")
    shown = st.navigation([page(name) for name in PAGES], position="top")
    selection.restore()
    with missing.guarded("This page"):
        shown.run()


main()
