"""The Streamlit app: a menu of all pages, and the page of the URL."""

import os
from pathlib import Path

import streamlit as st

from graphcredit.store.log_text import one_line
from graphcredit.viewer.config import STORE_VARIABLE
from graphcredit.viewer.sitemap import PAGES, page
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.containers import add_style


def main() -> None:
    """Show the page of the URL."""
    shown = st.navigation([page(name) for name in PAGES], position="top")
    selection.restore()
    st.set_page_config(page_title=_title(shown.title), page_icon="🎯", layout="wide")
    add_style()
    with missing.guarded("This page"):
        selection.name_bad_numbers()
        shown.run()


def _title(page_title: str) -> str:
    """Return the title of the browser's tab: what is shown, the page, and the store."""
    chosen = selection.current()
    shown = {PAGES["trajectory"]: chosen.trajectory, PAGES["graph"]: chosen.task}
    if chosen.iteration is not None:
        shown[PAGES["tasks"]] = f"{chosen.run}/{chosen.iteration}"
    thing = shown.get(page_title)
    store = Path(os.environ[STORE_VARIABLE]).name
    return " · ".join([*([one_line(thing, 60)] if thing else []), page_title, store])
