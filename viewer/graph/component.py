"""The Streamlit component that draws a state graph with Cytoscape.

Streamlit sends a component's script and data again whenever its data changes. So the library, the
graph, and its marks (selection, overlaid path, states found) are components of their own: a click
sends only the marks. Nothing is fetched from the network.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from graphcredit.viewer.graph.assets import asset, graph_script
from graphcredit.viewer.graph.drawing import Drawing
from graphcredit.viewer.graph.facts import FoundStates

_ANNOUNCE_LIBRARY = """
export default function () {
  globalThis.dispatchEvent(new Event("graphcredit-cytoscape"));
}
"""

_ANNOUNCE_MARKS = """
export default function ({ data }) {
  globalThis["graphcredit-marks"] = data;
  globalThis.dispatchEvent(new Event("graphcredit-marks"));
}
"""

_KEY = "graph"


def show_graph(
    drawing: Drawing,
    *,
    path: Sequence[str],
    selected: str | None,
    found: FoundStates,
    on_click: Callable[[str], None],
    on_find: Callable[[str], None],
) -> None:
    """Show a graph.

    Args:
        drawing: The drawing.
        path: Keys of the states and edges of an overlaid trajectory.
        selected: Key of the selected state or edge.
        found: The states that were searched for.
        on_click: Called with the key of the clicked state or edge; empty for the background.
        on_find: Called with words to search for; empty to end the search.
    """
    library, graph, marks = _components()
    drawn = drawing.as_json()
    content = json.dumps(drawn, sort_keys=True).encode()
    graph(
        key=_KEY,
        data=drawn | {"signature": hashlib.sha256(content).hexdigest()},
        on_clicked_change=lambda: on_click(_said("clicked")),
        on_find_change=lambda: on_find(_said("find")),
    )
    library(key="graph_library", data={}, height=1)
    shown = {"path": list(path), "selected": selected, "found": found.as_json()}
    marks(key="graph_marks", data=shown, height=1)


def _said(name: str) -> str:
    return st.session_state[_KEY][name] or ""


@cache
def _components() -> tuple[Callable[..., Any], ...]:
    return (
        component("graphcredit_cytoscape", js=asset("cytoscape.min.js") + _ANNOUNCE_LIBRARY),
        component(
            "graphcredit_graph", html=asset("graph.html"), css=asset("graph.css"), js=graph_script()
        ),
        component("graphcredit_marks", js=_ANNOUNCE_MARKS),
    )
