"""The scripts and styles of a drawn graph, for the app and for the exported pages."""

from importlib.resources import files

_SCRIPTS = (
    *("styles.js", "legend.js", "slices.js", "find.js", "goal.js", "minimap.js", "picture.js"),
    "graph.js",
)
"""In one scope, one after the other: a component of Streamlit has one script, as the export has."""


def asset(name: str) -> str:
    """Return the text of a file of this folder."""
    return (files("graphcredit.viewer.graph.assets") / name).read_text(encoding="utf-8")


def graph_script() -> str:
    """Return the script that draws a graph; it exports `drawGraph`."""
    return "\n".join(map(asset, _SCRIPTS))


def page_script() -> str:
    """Return the script of an exported page, which needs the library before it.

    It is no module: browsers load none from a file beside a page that is itself a file.
    """
    script = graph_script().replace("export default function", "function")
    return f'(() => {{\n"use strict";\n{script}\n{asset("page.js")}\n}})();\n'


def page_style() -> str:
    """Return the style of an exported page."""
    return asset("page.css") + asset("graph.css")
