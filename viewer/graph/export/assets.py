"""The files of an exported page: the graph component's, and those of what stands around it."""

from importlib.resources import files

from graphcredit.viewer.graph.assets import asset, graph_script


def page_script() -> str:
    """Return the script of an exported page, which needs the library before it.

    It is no module: browsers load none from a file beside a page that is itself a file.
    """
    script = graph_script().replace("export default function", "function")
    return f'(() => {{\n"use strict";\n{script}\n{page_asset("page.js")}\n}})();\n'


def page_style() -> str:
    """Return the style of an exported page."""
    return page_asset("page.css") + asset("graph.css")


def page_asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    path = files("graphcredit.viewer.graph.export") / "assets" / name
    return path.read_text(encoding="utf-8")
