"""Save the graph that is shown, on the Graph page: as a page of its own, or as a picture."""

from collections.abc import Sequence

import pyarrow as pa
import streamlit as st

from graphcredit.viewer.graph.drawing import Drawing
from graphcredit.viewer.graph.export import graph_html
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.svg import draw
from graphcredit.viewer.graph.task_graph import TaskGraph
from graphcredit.viewer.pages.parts.graph_place import GraphPlace
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.task_names import task_names, task_title


def title_of(place: GraphPlace) -> str:
    """Return what a saved graph is called: its task, run and iteration."""
    names = ask(task_names, run_id=place.run_id, iteration=place.iteration)
    task = task_title(place.task_id, names.get(place.task_id))
    return f"{task} · run {place.run_id}, iteration {place.iteration}"


def offer_export(
    place: GraphPlace,
    whole: TaskGraph,
    shown: TaskGraph,
    steps: pa.Table,
    shading: Shading,
    drawing: Drawing,
    path: Sequence[str],
) -> None:
    """Show the buttons that save a graph."""
    with st.container(horizontal=True):
        st.download_button(
            "Export as HTML",
            data=lambda: graph_html(
                drawing, shown, steps, path=path, column=place.column, title=title_of(place)
            ),
            file_name="graph.html",
            mime="text/html",
            on_click="ignore",
            help="One file that needs no server. It has the graph shown here, with its texts.",
        )
        st.download_button(
            "Export as SVG",
            data=lambda: draw(shown, whole=whole, shading=shading, title=title_of(place)),
            file_name="graph.svg",
            mime="image/svg+xml",
            on_click="ignore",
            help="A picture of the graph shown here, with its title and legend.",
        )
