"""Charts in colours that can be read on the page; curves over the iterations of runs.

A chart is a specification of Vega-Lite. Altair would check each part of it against a schema, which
takes longer than all queries of a page.
"""

from typing import Any, TypeAlias

import pyarrow as pa
import streamlit as st

from graphcredit.viewer.widgets.colours import ink

Spec: TypeAlias = dict[str, Any]


def show_chart(chart: Spec, **options: Any) -> Any:
    """Show a chart, as `st.vega_lite_chart` does; its own axes are fainter than WCAG's 4.5 to 1."""
    colour = {"color": ink(st.context.theme.type)}
    words = {"labelColor": colour["color"], "titleColor": colour["color"]}
    config = {"axis": words, "legend": words, "title": colour, "text": colour}
    return st.vega_lite_chart(chart | {"config": config}, **options)


def field(column: str, **options: Any) -> Spec:
    """Return the encoding of a column, which is followed by `:N`, `:O` or `:Q` for its kind."""
    name, _, kind = column.rpartition(":")
    return {"field": name, "type": _KINDS[kind], **options}


_KINDS = {"N": "nominal", "O": "ordinal", "Q": "quantitative"}

CLICK = "point"
"""Name of the selection by a click."""

_WIDTH, _HEIGHT = 340, 200
_COLOURS = ["#2f7fd1", "#c9622a", "#7a5bd0", "#3f8f5f"]
"""Each has a contrast above 3 on the light and on the dark ground of the viewer."""


def curve(rows: pa.Table, value: str, title: str) -> Spec:
    """Return a chart of one number.

    Args:
        rows: Columns `run, iteration` and the number; a line of the chart is a run.
        value: Column of the number.
        title: Title of the chart.
    """
    has_lines = len(set(rows["run"].to_pylist())) > 1
    strokes = {"symbolType": "stroke", "symbolSize": 400}
    legend = {"orient": "bottom", "title": None, "columns": 2, **strokes} if has_lines else None
    number = {"axis": {"format": "~g", "tickCount": 5}, "scale": {"zero": False}}
    line = {
        "color": field("run:N", legend=legend, scale={"range": _COLOURS}),
        # Not by colour alone.
        "strokeDash": field("run:N", legend=legend),
    }
    # A point is too small to hit; a fully transparent mark would receive no clicks.
    target = {"type": "point", "filled": True, "size": 350, "opacity": 0.01, "cursor": "pointer"}
    click = {"name": CLICK, "select": {"type": "point", "fields": ["run", "iteration"]}}
    tips = [field("run:N"), field("iteration:Q"), field(f"{value}:Q", title=title)]
    x = field("iteration:Q", title=None, axis={"tickMinStep": 1, "format": "d"})
    shared = {"x": x, "y": field(f"{value}:Q", title=None, **number), "tooltip": tips}
    drawn = {"mark": {"type": "line", "point": {"size": 40}}, "encoding": line}
    layers = [drawn, {"mark": target, "params": [click]}]
    size = {"width": _WIDTH, "height": _HEIGHT + (50 if has_lines else 0)}
    return {"data": rows, "title": title, **size, "encoding": shared, "layer": layers}
