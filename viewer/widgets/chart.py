"""Show a chart in colours of text that can be read on the background of the page."""

from typing import Any

import streamlit as st

from graphcredit.viewer.widgets.colours import ink


def show_chart(chart: Any, **options: Any) -> Any:
    """Show a chart; Streamlit's own axes are fainter than WCAG's 4.5 to 1.

    Args:
        chart: The chart.
        options: Options of `st.altair_chart`.

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
