"""The list of the viewer's pages: names, titles and order."""

from functools import partial
from importlib import import_module

import streamlit as st
from streamlit.navigation.page import Page

PAGES: dict[str, str] = {
    "runs": "Runs",
    "tasks": "Tasks",
    "graph": "Graph",
    "trajectory": "Trajectory",
    "search": "Search",
}
"""Name to title, in the order of the menu. A page's name is its path in the URL, and
`graphcredit.viewer.pages.<name>` has its `show()`; the first one is the root of the site."""


def page(name: str) -> Page:
    """Return the Streamlit page of a name in `PAGES`, for menus, links and switches.

    Streamlit identifies pages by their path, so each caller may make its own object.
    """
    return st.Page(
        partial(_show, name), title=PAGES[name], url_path=name, default=name == next(iter(PAGES))
    )


def _show(name: str) -> None:
    """Import a page at its first use, so that the others cost nothing."""
    import_module(f"graphcredit.viewer.pages.{name}").show()
