"""The pages of the viewer: what they are called and where they live."""

from dataclasses import dataclass
from functools import partial
from importlib import import_module

import streamlit as st
from streamlit.navigation.page import Page


@dataclass(frozen=True, kw_only=True, slots=True)
class PageInfo:
    """A page: `graphcredit.viewer.pages.<name>` has its `show()`."""

    name: str
    """Its module, and its path in the URL."""
    title: str
    icon: str
    """An emoji: the icons of Streamlit's own font would be fetched from the network."""


PAGES: dict[str, PageInfo] = {
    page.name: page
    for page in (
        PageInfo(name="runs", title="Runs", icon="🏃"),
        PageInfo(name="tasks", title="Tasks", icon="📋"),
        PageInfo(name="graph", title="Graph", icon="🕸️"),
        PageInfo(name="trajectory", title="Trajectory", icon="👣"),
        PageInfo(name="compare", title="Compare", icon="⚖️"),
        PageInfo(name="search_graph", title="Search graph", icon="🔎"),
        PageInfo(name="sql", title="SQL", icon="🗄️"),
    )
}
"""Name to page, in the order of the menu; the first one is the root of the site."""


def page(name: str) -> Page:
    """Return Streamlit's page of a name in `PAGES`: for the menu, for links, for switching to it.

    Streamlit tells pages apart by their path, so each caller may make its own.
    """
    info = PAGES[name]
    return st.Page(
        partial(_show, name),
        title=info.title,
        icon=info.icon,
        url_path=name,
        default=name == next(iter(PAGES)),
    )


def _show(name: str) -> None:
    """Import a page when it is first opened, so that each costs only what it needs."""
    import_module(f"graphcredit.viewer.pages.{name}").show()
