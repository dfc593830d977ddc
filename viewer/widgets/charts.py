"""Charts in colours that can be read on the page; curves over the iterations of runs."""

from typing import Any

import altair as alt
import pyarrow as pa
import streamlit as st

from graphcredit.viewer.widgets.colours import ink


def show_chart(chart: Any, **options: Any) -> Any:
    """Show a chart; Streamlit's own axes are fainter than WCAG's 4.5 to 1.

    Returns:
        The result of `st.altair_chart`; with `on_select`, the selection.
    """
    colour = ink(st.context.theme.type)
    labels: dict[str, Any] = {"labelColor": colour, "titleColor": colour}
    readable = chart.configure_axis(**labels).configure_legend(**labels)
    return st.altair_chart(
        readable.configure_title(color=colour).configure_text(color=colour),
        **options,
    )


CLICK = "point"
"""Name of the selection by a click."""

_WIDTH, _HEIGHT = 340, 200
_COLOURS = ["#2f7fd1", "#c9622a", "#7a5bd0", "#3f8f5f"]
"""Each has a contrast above 3 on the light and on the dark ground of the viewer."""


def curve(rows: pa.Table, value: str, title: str) -> alt.LayerChart | alt.FacetChart:
    """Return a chart of one number.

    Args:
        rows: Columns `run, iteration, line` and the number; a line of the chart has the points with
            one `line`, a name that Vega draws as text.
        value: Column of the number.
        title: Title of the chart.
    """
    has_lines = len(set(rows["line"].to_pylist())) > 1
    legend = (
        alt.Legend(orient="bottom", title=None, columns=2, symbolType="stroke", symbolSize=400)
        if has_lines
        else None
    )
    base = alt.Chart(rows).encode(
        x=alt.X("iteration:Q", title=None, axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y(
            f"{value}:Q",
            title=None,
            axis=alt.Axis(format="~g", tickCount=5),
            scale=alt.Scale(zero=False),
        ),
        tooltip=[
            alt.Tooltip("line:N", title="run"),
            alt.Tooltip("iteration:Q"),
            alt.Tooltip(f"{value}:Q", title=title),
        ],
    )
    drawn = base.mark_line(point=alt.OverlayMarkDef(size=40)).encode(
        color=alt.Color("line:N", legend=legend, scale=alt.Scale(range=_COLOURS)),
        # Not by colour alone.
        strokeDash=alt.StrokeDash("line:N", legend=legend),
    )
    # A point is too small to hit; a fully transparent mark would receive no clicks.
    click = alt.selection_point(name=CLICK, fields=["run", "iteration"])
    target = base.mark_point(filled=True, size=350, opacity=0.01, cursor="pointer")
    return alt.layer(drawn, target.add_params(click)).properties(
        title=title, height=_HEIGHT + (50 if has_lines else 0), width=_WIDTH
    )
