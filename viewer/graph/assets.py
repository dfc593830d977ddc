"""The files of the graph component, for the app and for the exported pages."""

from importlib.resources import files

_SCRIPTS = (
    *("styles.js", "legend.js", "slices.js", "folds.js", "find.js", "minimap.js"),
    *("play.js", "frames.js", "graph.js"),
)
"""In one scope, one after the other: a component of Streamlit has one script, as the export has."""


def asset(name: str) -> str:
    """Return the text of a file in `component/assets/`."""
    path = files("graphcredit.viewer.graph") / "component" / "assets" / name
    return path.read_text(encoding="utf-8")


def graph_script() -> str:
    """Return the script that draws a graph; it exports `drawGraph`."""
    return "\n".join(map(asset, _SCRIPTS))
